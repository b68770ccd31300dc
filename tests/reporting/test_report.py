"""Reports: complete, harmless, small, the same bytes twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

import ensemble_gpu
from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RidgeRegressor,
    report_html,
)
from tests.reporting.pages import check_page

HOSTILE = '<script>alert("x")</script>&\'"\u202e\x00\ud800</svg>'


def report(tmp_path, estimator, X, y, **options):
    path = tmp_path / "report.html"
    report_html(estimator, X, y, path, **options)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tumours():
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def boosted(tumours):
    X, y = tumours
    return AdaBoostClassifier(n_estimators=30).fit(X[:400], y[:400])


def test_a_report_of_adaboost_has_every_part(boosted, tumours, tmp_path):
    X, y = tumours
    text = report(tmp_path, boosted, X[400:], y[400:], title="Tumours", note="For a test.")
    page = check_page(text)
    for title in ("Scores", "Learning curve", "Right and wrong", "Importances",
                  "What features do", "Margins", "Worst rows", "Data", "Model and settings",
                  "Error by rounds", "bound on the training error", "ROC", "Precision and recall",
                  "Calibration", "Confusion", "Margins of the test rows"):  # fmt: skip
        assert title in page.said, title
    assert boosted.model_.fingerprint() in page.said
    assert ensemble_gpu.__version__ in page.said
    assert "n_estimators 30" in page.said
    assert f"{boosted.score(X[400:], y[400:]):.2%}".replace("%", " %") in page.said
    assert "Tumours" in page.said
    assert "For a test." in page.said
    assert "exact Shapley values" in page.said
    top = boosted.feature_importances_.argmax()
    assert X.columns[top] in page.said
    assert page.tags["svg"] >= 10 + 6
    assert page.tags["details"] >= 10


def test_the_same_model_and_rows_give_the_same_bytes(boosted, tumours, tmp_path):
    X, y = tumours
    first = report(tmp_path, boosted, X[400:], y[400:])
    again = AdaBoostClassifier(n_estimators=30).fit(X[:400], y[:400])
    assert report(tmp_path, again, X[400:], y[400:]) == first


def test_hostile_names_are_text(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(80, 2))
    labels = np.where(values[:, 0] + 0.5 * rng.normal(size=80) > 0, HOSTILE, "b&<i>b</i>")
    labels = np.array([label.encode("utf-8", "replace").decode() for label in labels])
    kinds = np.where(rng.random(80) < 0.5, "<b>", "</table>")
    X = pd.DataFrame(
        {HOSTILE.replace("\ud800", ""): values[:, 0], "<img src=x onerror=y>": values[:, 1]}
    )
    X["<style>*{}"] = pd.Categorical(kinds)
    model = BoostingClassifier(n_estimators=5, max_depth=2, min_samples_leaf=2).fit(X, labels)
    text = report(tmp_path, model, X, labels, title=HOSTILE, note="<script>")
    page = check_page(text)
    assert page.tags["style"] == 1
    assert page.tags["i"] == 0
    assert "<script" not in text.lower()
    assert "<img" not in text.lower()
    for gone in ("\u202e", "\x00", "\ud800"):
        assert gone not in text
    assert "&lt;script&gt;" in text


@pytest.mark.slow
def test_reports_of_several_classes(tmp_path):
    X, y = load_wine(return_X_y=True, as_frame=True)
    for model in (
        RandomForestClassifier(n_estimators=5, random_state=0),
        DecisionTreeClassifier(max_depth=3),
        AdaBoostClassifier(n_estimators=10, variant="discrete"),
    ):
        page = check_page(report(tmp_path, model.fit(X[::2], y[::2]), X[1::2], y[1::2]))
        assert "Confusion" in page.said
        assert "class_2" not in page.said
        assert "Worst rows" in page.said


@pytest.mark.slow
def test_reports_of_numbers_categories_and_missing_values(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X["sex"] = X["sex"].map({1.0: "one", 2.0: "two"}).astype("category")
    X.loc[::5, "bmi"] = np.nan
    model = BoostingRegressor(n_estimators=20, max_depth=3, early_stopping=True).fit(
        X[:300], y[:300]
    )
    page = check_page(report(tmp_path, model, X[300:], y[300:]))
    for words in ("RMSE by rounds", "Residuals", "True and predicted", "Spread of the residuals",
                  "What features do", "2 categories", "Loss in training",
                  "best round"):  # fmt: skip
        assert words in page.said, words
    assert f"bmi number {100 * X[300:]['bmi'].isna().mean():.1f} %" in page.said


def test_reports_of_other_estimators(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    quantiles = BoostingRegressor("quantile", quantile=[0.1, 0.9], n_estimators=10, max_depth=1)
    page = check_page(report(tmp_path, quantiles.fit(X[:300], y[:300]), X[300:], y[300:]))
    assert "of y are below quantile 0.1" in page.said
    forest = RandomForestRegressor(n_estimators=3, random_state=0).fit(X[:300], y[:300])
    assert "Residuals" in check_page(report(tmp_path, forest, X[300:], y[300:])).said
    ridge = RidgeRegressor().fit(X[:300], y[:300])
    assert "Residuals" in check_page(report(tmp_path, ridge, X[300:], y[300:])).said
    level, qid = np.digitize(y, np.quantile(y, [0.3, 0.7])), np.arange(len(y)) // 20
    ranker = BoostingRanker(n_estimators=10, max_depth=1).fit(X, level, qid=qid)
    page = check_page(report(tmp_path, ranker, X, level, qid=qid))
    assert "NDCG@10 by rounds" in page.said
    with pytest.raises(ValueError, match="qid must say which query"):
        report(tmp_path, ranker, X, level)


def test_many_features_and_classes_stay_small(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(600, 300)), rng.integers(0, 25, 600)
    X[:, 0] += y
    model = DecisionTreeClassifier(max_depth=6).fit(X, y)
    page = check_page(report(tmp_path, model, X, y))
    assert "the 40 most important ones are listed" in page.said
    assert "8 most frequent classes" in page.said
    assert "taken for" in page.said


def test_bad_input_is_named(boosted, tumours, tmp_path):
    X, y = tumours
    with pytest.raises(ValueError, match="y_test must be one-dimensional with a value for each"):
        report(tmp_path, boosted, X, y[:-1])
    with pytest.raises(ValueError, match="labels that the estimator has not seen: \\['other'\\]"):
        report(tmp_path, boosted, X[:2], ["other", "benign"])
    with pytest.raises(ValueError, match="X_test has 3 features"):
        report(tmp_path, boosted, X.iloc[:, :3], y)
    with pytest.raises(ValueError, match="qid is for estimators that rank"):
        report(tmp_path, boosted, X, y, qid=y)
