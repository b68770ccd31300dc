"""ROC and precision-recall under imbalance: `python -m examples.imbalance [picture.png]`.

One classifier, judged on as many positives as negatives and on ten times as many negatives of the
same distribution: the ROC curve stays, precision falls.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu import BoostingClassifier, metrics
from examples.experiment import Claim, Experiment, report


def sample(n, rng, label):
    X = rng.normal(size=(n, 6))
    return X + (0.6 if label else 0.0), np.full(n, label)


def run(small=False):
    n = 400 if small else 3000
    rng = np.random.default_rng(0)
    X, y = (np.concatenate(pair) for pair in zip(sample(n, rng, 1), sample(n, rng, 0), strict=True))
    model = BoostingClassifier(max_depth=2, n_estimators=100, early_stopping=False).fit(X, y)
    positive, negative = sample(2000, rng, 1)[0], sample(20_000, rng, 0)[0]
    scores = {}
    for name, rows in (("1 : 1", negative[:2000]), ("1 : 10", negative)):
        truth = np.concatenate([np.ones(len(positive)), np.zeros(len(rows))])
        scores[name] = (truth, model.decision_function(np.concatenate([positive, rows])))
    # The same negatives ten times over: nothing but the proportion differs.
    truth, score = scores["1 : 1"]
    weight = np.where(truth == 1.0, 1.0, 10.0)
    auc = {name: float(metrics.roc_auc(*pair)) for name, pair in scores.items()}
    precision = {name: float(metrics.average_precision(*pair)) for name, pair in scores.items()}
    repeated = float(metrics.roc_auc(truth, score, sample_weight=weight))
    rows = [[name, f"{auc[name]:.4f}", f"{precision[name]:.4f}"] for name in scores]
    claims = [
        Claim(
            "ROC does not depend on the proportion of the classes",
            f"AUC {auc['1 : 1']:.4f} and {auc['1 : 10']:.4f}; with each negative ten times "
            f"{repeated:.4f}, the same to 1e-12: {abs(repeated - auc['1 : 1']) < 1e-12}",
            abs(repeated - auc["1 : 1"]) < 1e-12 and abs(auc["1 : 10"] - auc["1 : 1"]) < 0.02,
        ),
        Claim(
            "precision does",
            f"average precision {precision['1 : 1']:.3f} and {precision['1 : 10']:.3f}",
            precision["1 : 10"] < precision["1 : 1"] - 0.2,
        ),
    ]

    def draw(figure):
        left, right = figure.subplots(1, 2)
        for name, pair in scores.items():
            curve = metrics.roc_curve(*pair)
            left.plot(curve.fpr, curve.tpr, label=f"{name}, AUC {auc[name]:.3f}")
            curve = metrics.precision_recall_curve(*pair)
            right.plot(curve.recall, curve.precision, label=f"{name}, AP {precision[name]:.3f}")
        left.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC")
        right.set(xlabel="recall", ylabel="precision", title="precision and recall")
        for ax in (left, right):
            ax.legend(frameon=False)

    columns = ["positives : negatives", "AUC", "average precision"]
    return Experiment("ROC and PR under imbalance", columns, rows, claims, draw)


if __name__ == "__main__":
    report(run)
