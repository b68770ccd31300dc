"""Several validation sets and several metrics at once."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score, root_mean_squared_error

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, RoundInfo
from ensemble_gpu.boosting.evaluation import watched_metrics
from tests.boosters import plain
from tests.boosting.test_watching import noisy, noisy_numbers
from tests.places import Place

TRAIN, FIRST, SECOND = noisy(1), noisy(2, 90), noisy(3, 70)
NUMBERS, OTHERS = noisy_numbers(1), noisy_numbers(2, 90)
CLASSIFIERS = [
    AdaBoostClassifier(n_estimators=12, calibrate=False),
    BoostingClassifier(n_estimators=12, max_depth=1),
    BoostingClassifier(**plain(n_estimators=12, max_depth=3)),
    BoostingClassifier("squared", n_estimators=12, max_depth=1),
]


def sets(place: Place | None = None) -> list[tuple]:
    put = place.put if place else np.asarray
    weights = SECOND.with_weights().weights
    return [(put(FIRST.X), put(FIRST.y)), (put(SECOND.X), put(SECOND.y), put(weights))]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
def test_histories_are_the_metrics_of_staged_predictions(place: Place, estimator):
    estimator.set_params(metric=["auc", "log_loss", "error"])
    estimator.fit(place.put(TRAIN.X), place.put(TRAIN.y), eval_set=sets(place))
    weights = {"validation_0": None, "validation_1": SECOND.with_weights().weights}
    assert list(estimator.history_.evals) == list(weights)
    for (name, w), data in zip(weights.items(), (FIRST, SECOND), strict=True):
        found = estimator.history_.evals[name]
        assert list(found) == ["roc_auc", "log_loss", "error"]
        X = place.put(data.X)
        outputs = [place.host(F) for F in estimator.staged_decision_function(X)]
        area = [roc_auc_score(data.y, F, sample_weight=w) for F in outputs]
        np.testing.assert_allclose(found["roc_auc"], area, rtol=1e-12)
        p = [place.host(p) for p in estimator.staged_predict_proba(X)]
        expected = [log_loss(data.y, q, sample_weight=w) for q in p]
        np.testing.assert_allclose(found["log_loss"], expected, rtol=1e-9)
        wrong = [np.average(q.argmax(axis=1) != data.y, weights=w) for q in p]
        np.testing.assert_allclose(found["error"], wrong, rtol=1e-12)


def test_areas_of_several_classes_are_one_against_the_rest():
    train, other = noisy(1, n_classes=3), noisy(2, 90, 3)
    estimator = BoostingClassifier(n_estimators=8, metric="roc_auc", max_depth=1)
    estimator.fit(train.X, train.y, X_val=other.X, y_val=other.y)
    expected = [
        roc_auc_score(other.y, p, multi_class="ovr")
        for p in estimator.staged_predict_proba(other.X)
    ]
    np.testing.assert_allclose(estimator.history_.validation, expected, rtol=1e-12)


def test_histories_of_numbers_are_those_of_staged_predictions():
    estimator = BoostingRegressor(
        "huber", n_estimators=8, metric=["rmse", "mae", "loss"], max_depth=1
    )
    estimator.fit(NUMBERS.X, NUMBERS.y, X_val=OTHERS.X, y_val=OTHERS.y)
    found = estimator.history_.evals["validation"]
    stages = list(estimator.staged_predict(OTHERS.X))
    for name, metric in (("rmse", root_mean_squared_error), ("mae", mean_absolute_error)):
        np.testing.assert_allclose(found[name], [metric(OTHERS.y, p) for p in stages], rtol=1e-12)
    alone = BoostingRegressor("huber", n_estimators=8, max_depth=1)
    alone.fit(NUMBERS.X, NUMBERS.y, X_val=OTHERS.X, y_val=OTHERS.y)
    np.testing.assert_array_equal(found["loss"], alone.history_.validation)


def test_x_val_is_the_short_form_of_one_set():
    short = BoostingClassifier(n_estimators=5, max_depth=1).fit(
        TRAIN.X, TRAIN.y, X_val=FIRST.X, y_val=FIRST.y
    )  # fmt: skip
    long = BoostingClassifier(n_estimators=5, max_depth=1).fit(
        TRAIN.X, TRAIN.y, eval_set=[sets()[0]]
    )
    np.testing.assert_array_equal(short.history_.validation, long.history_.validation)
    assert list(short.history_.evals) == ["validation"]
    assert short.history_.decides == ("validation", "loss")
    assert long.history_.decides == ("validation_0", "loss")


@pytest.mark.parametrize(
    ("stop_on", "decides"),
    [
        (None, ("b", "roc_auc")),
        ("a", ("a", "roc_auc")),
        ("error", ("b", "error")),
        (("a", "error"), ("a", "error")),
    ],
    ids=str,
)
def test_the_first_metric_of_the_last_set_decides_unless_named(stop_on, decides):
    estimator = BoostingClassifier(
        n_estimators=200, learning_rate=1.0, metric=["roc_auc", "error"], early_stopping=True,
        n_iter_no_change=5,max_depth=1
    )  # fmt: skip
    estimator.fit(TRAIN.X, TRAIN.y, eval_set=sets(), eval_names=["a", "b"], stop_on=stop_on)
    history = estimator.history_
    assert history.decides == decides
    series = history.evals[decides[0]][decides[1]]
    np.testing.assert_array_equal(history.validation, series)
    np.testing.assert_array_equal(estimator.validation_loss_, series)
    best = int(np.argmax(series) if decides[1] == "roc_auc" else np.argmin(series)) + 1
    assert estimator.n_estimators_ == history.best_round == best
    assert len(series) == best + 5 < 200
    assert estimator.stop_reason_ == f"{' '.join(decides)} has not improved for 5 rounds"


def test_a_callable_says_its_direction():
    def area(y, p):
        return roc_auc_score(y, p[:, 1])

    area.greater_is_better = True
    params = {"n_estimators": 100, "learning_rate": 1.0, "early_stopping": True, "random_state": 0}
    ours = BoostingClassifier(metric="roc_auc", max_depth=1, **params).fit(TRAIN.X, TRAIN.y)
    theirs = BoostingClassifier(metric=area, max_depth=1, **params).fit(TRAIN.X, TRAIN.y)
    np.testing.assert_allclose(ours.history_.validation, theirs.history_.validation, rtol=1e-12)
    assert ours.n_estimators_ == theirs.n_estimators_ > 1
    assert theirs.history_.decides == ("validation", "area")
    assert ours.model_ == theirs.model_


def test_callbacks_see_every_metric_of_every_set():
    seen: list[RoundInfo] = []
    estimator = AdaBoostClassifier(n_estimators=4, metric=["auc", None], callbacks=[seen.append])
    estimator.fit(TRAIN.X, TRAIN.y, eval_set=sets(), eval_names=("a", "b"))
    for name, of_set in estimator.history_.evals.items():
        for metric, values in of_set.items():
            np.testing.assert_array_equal([info.evals[name][metric] for info in seen], values)
    np.testing.assert_array_equal(
        [info.validation_loss for info in seen], estimator.history_.validation
    )


def test_sets_and_metrics_do_not_change_the_model():
    plain = BoostingClassifier(n_estimators=6, max_depth=1).fit(TRAIN.X, TRAIN.y)
    watched = BoostingClassifier(n_estimators=6, metric=["auc", "brier"], max_depth=1)
    assert watched.fit(TRAIN.X, TRAIN.y, eval_set=sets()).model_ == plain.model_


def test_probabilities_are_computed_once_a_set_and_round():
    calls = []

    class Counting(BoostingClassifier):
        def _prediction(self, F, target, where):
            calls.append(F.shape)
            return super()._prediction(F, target, where)

    Counting(n_estimators=3, metric=["log_loss", "error", "brier"]).fit(
        TRAIN.X, TRAIN.y, eval_set=sets()
    )
    assert len(calls) == 6


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, ["loss"]),
        ("auc", ["roc_auc"]),
        (["loss", "auc"], ["loss", "roc_auc"]),
        ([log_loss, lambda y, p: 0.0, lambda y, p: 1.0], ["log_loss", "metric", "metric 2"]),
    ],
    ids=["None", "alias", "names", "callables"],
)
def test_metrics_have_names(given, names):
    assert [metric.name for metric in watched_metrics(given, "classification")] == names


X2, Y2 = FIRST.X, FIRST.y
BAD_SETS = {
    "no list": ({"eval_set": X2}, TypeError, "eval_set must be a list of tuples .*ndarray"),
    "empty": ({"eval_set": []}, TypeError, "eval_set must be a list of tuples .*a list of 0"),
    "a tuple of arrays": ({"eval_set": (X2, Y2)}, TypeError, r"eval_set\[0\] must be a tuple"),
    "too long": ({"eval_set": [(1, 2, 3, 4, 5)]}, TypeError, r"eval_set\[0\] must be a tuple"),
    "no X": ({"eval_set": [(None, Y2)]}, ValueError, r"eval_set\[0\]\[0\] must be the features"),
    "no y": ({"eval_set": [(X2, None)]}, ValueError, r"requires eval_set\[0\]\[1\] to be passed"),
    "features": ({"eval_set": [(X2, Y2), (X2[:, :2], Y2)]}, ValueError,
                 r"eval_set\[1\]\[0\] has 2 features"),
    "rows": ({"eval_set": [(X2, Y2), (X2, Y2[:5])]}, ValueError,
             r"eval_set\[1\]\[0\] has 90 rows, eval_set\[1\]\[1\] has 5"),
    "weights": ({"eval_set": [(X2, Y2, -np.ones(90))]}, ValueError,
                r"eval_set\[0\]\[2\] must be >= 0"),
    "labels": ({"eval_set": [(X2, Y2 + 7)]}, ValueError,
               r"eval_set\[0\]\[1\] holds labels that y does not: \[7, 8\]"),
    "both": ({"eval_set": [(X2, Y2)], "X_val": X2, "y_val": Y2}, ValueError,
             "eval_set and X_val were both given"),
    "names alone": ({"eval_names": ["a"]}, ValueError, "eval_names is for eval_set"),
    "too few names": ({"eval_set": [(X2, Y2)] * 2, "eval_names": ["a"]}, ValueError,
                      "eval_names must be 2 different names"),
    "equal names": ({"eval_set": [(X2, Y2)] * 2, "eval_names": ["a", "a"]}, ValueError,
                    "eval_names must be 2 different names"),
    "no string": ({"eval_set": [(X2, Y2)], "eval_names": [3]}, TypeError,
                  "eval_names must hold strings; got 3"),
    "y_val alone": ({"y_val": Y2}, ValueError, "y_val was given, and needs X_val"),
    "stop_on": ({"X_val": X2, "y_val": Y2, "stop_on": "auc"}, ValueError,
                r"stop_on must be .*name of a set \['validation'\], of a metric \['loss'\]"),
    "stop_on nothing": ({"stop_on": "loss"}, ValueError, "stop_on is for validation rows"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SETS)
def test_wrong_sets_are_named(name):
    given, kind, message = BAD_SETS[name]
    estimator = BoostingClassifier(n_estimators=2, max_depth=1)
    with pytest.raises(kind, match=message):
        estimator.fit(TRAIN.X, TRAIN.y, **given)
    assert not hasattr(estimator, "model_")


@pytest.mark.parametrize(
    ("metric", "kind", "message"),
    [
        ("rmse", ValueError, "metric must be one of 'loss', 'log_loss', .*got 'rmse'"),
        ([], ValueError, "metric must not be an empty list"),
        (["auc", "roc_auc"], ValueError, "metric names 'roc_auc' twice"),
        (["auc", 3], TypeError, "or a list of these"),
    ],
    ids=str,
)
def test_wrong_metrics_are_named(metric, kind, message):
    with pytest.raises(kind, match=message):
        BoostingClassifier(metric=metric, max_depth=1).fit(TRAIN.X, TRAIN.y)
    with pytest.raises(ValueError, match=r"metric must be one of 'loss', 'rmse', .*got 'auc'"):
        BoostingRegressor(metric="auc", max_depth=1).fit(NUMBERS.X, NUMBERS.y)


def test_data_of_another_device_is_refused_by_the_name_of_the_set():
    import array_api_strict

    X = array_api_strict.asarray(X2, device=array_api_strict.Device("device1"))
    with pytest.raises(ValueError, match=r"X and eval_set\[0\]\[0\] must be of one array library"):
        BoostingClassifier(max_depth=1).fit(TRAIN.X, TRAIN.y, eval_set=[(X, Y2)])
