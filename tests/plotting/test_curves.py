import sys

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.diagnostics import margins, staged_errors, training_error_bound
from ensemble_gpu.plotting import curves as plotting

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)


@pytest.fixture(scope="module")
def two():
    X, y = load_breast_cancer(return_X_y=True)
    return AdaBoostClassifier(n_estimators=40).fit(X[:400], y[:400]), X, y


@pytest.fixture(scope="module")
def three():
    X, y = load_wine(return_X_y=True)
    return AdaBoostClassifier(n_estimators=20).fit(X, y), X, y


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_learning_curve_shows_errors_and_bound_on_a_log_axis(two):
    model, X, y = two
    ax = plotting.plot_learning_curve(model, X[:400], y[:400], X[400:], y[400:])
    bound, test, train, zero = ax.get_lines()
    errors = staged_errors(model, X[400:], y[400:]), staged_errors(model, X[:400], y[:400])
    lowest = min(e[e > 0.0].min() for e in errors)
    assert (errors[1] == 0.0).any()
    above = training_error_bound(model)
    above[above <= lowest / 2] = np.nan  # below the line of zero there is nothing
    np.testing.assert_array_equal(bound.get_ydata(), above)
    for line, error in zip((test, train), errors, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), np.where(error > 0.0, error, lowest / 2))
    assert ax.get_ylim()[0] < lowest / 2  # zero is inside of the picture, and named
    assert [text.get_text() for text in ax.texts] == ["0"]
    assert set(zero.get_ydata()) == {lowest / 2}
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel() == "rounds"
    ax.figure.canvas.draw()


def test_learning_curve_says_when_the_training_error_is_zero(two):
    model, X, y = two
    labels = list(lines(plotting.plot_learning_curve(model, X[:400], y[:400])))
    last_wrong = np.flatnonzero(staged_errors(model, X[:400], y[:400])).max() + 1
    assert f"train error (zero after round {last_wrong})" in labels
    assert not any("test" in label for label in labels)


def test_learning_curve_draws_on_the_axes_given(three):
    model, X, y = three
    figure, ax = plt.subplots()
    assert plotting.plot_learning_curve(model, X, y, ax=ax) is ax
    figure.canvas.draw()


@pytest.mark.slow
@pytest.mark.parametrize("which", ["two", "three"])
def test_margins_are_drawn_as_distribution_functions(which, request):
    model, X, y = request.getfixturevalue(which)
    ax = plotting.plot_margins(model, X, y, rounds=(5, 10_000))
    drawn = lines(ax)
    last = model.n_estimators_
    for t in (5, last):
        line = drawn[f"{t} rounds"]
        np.testing.assert_array_equal(line.get_xdata(), np.sort(margins(model, X, y, [t])[0]))
        assert line.get_ydata()[-1] == 1.0
    left, right = ax.get_xlim()
    assert -1.1 < left < -1.0 < 1.0 < right < 1.1
    ax.figure.canvas.draw()


@pytest.mark.slow
def test_shape_functions_draw_the_tables_of_the_most_important_features(two):
    model, X, _ = two
    figure = plotting.plot_shape_functions(model, n_features=4, X=X)
    assert len(figure.axes) == 6  # two rows of three; the last two are hidden
    visible = [ax for ax in figure.axes if ax.get_visible()]
    top = np.argsort(-model.feature_importances_, kind="stable")[:4]
    for f, ax in zip(top, visible, strict=True):
        assert ax.get_title().startswith(f"feature {f} ")
        steps = ax.patches[0].get_data()
        inside = (steps.edges[:-1] + steps.edges[1:]) / 2
        expected = model.model_.shape_function(int(f))(inside)[:, 0]
        np.testing.assert_array_equal(steps.values, expected)
    figure.canvas.draw()


def test_shape_functions_draw_a_line_per_class_and_name_them(three):
    model, X, _ = three
    names = [f"column {j}" for j in range(X.shape[1])]
    figure = plotting.plot_shape_functions(model, features=[0, 6], feature_names=names)
    assert [ax.get_title()[:8] for ax in figure.axes] == ["column 0", "column 6"]
    assert len(figure.axes[1].patches) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2"]
    figure.canvas.draw()


def test_shape_functions_take_names_and_rows_from_a_frame():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"age": [1.0, 2.0, 3.0, np.nan] * 5, "height": np.arange(20.0)})
    model = AdaBoostClassifier(n_estimators=3, missing="learn").fit(X, [0, 0, 1, 1] * 5)
    figure = plotting.plot_shape_functions(model, X=X)
    assert figure.axes[0].get_title().startswith("age")
    figure.canvas.draw()


def test_a_feature_that_no_stump_uses_is_flat(two):
    model = two[0]
    unused = int(np.flatnonzero(model.feature_importances_ == 0.0)[0])
    steps = plotting.plot_shape_functions(model, features=[unused]).axes[0].patches[0].get_data()
    assert (steps.values == 0.0).all()


def test_a_model_without_rounds_has_no_shape_functions():
    model = AdaBoostClassifier().fit(np.zeros((4, 1)), [0, 1, 1, 1])
    with pytest.raises(ValueError, match="no feature to draw"):
        plotting.plot_shape_functions(model)


def test_missing_matplotlib_is_named_with_its_extra(monkeypatch, two):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'ensemble_gpu\[plot\]'"):
        plotting.plot_margins(*two)


@pytest.fixture(scope="module")
def watched():
    """A classifier that has begun to learn its training rows by heart."""
    X, y = load_breast_cancer(return_X_y=True)
    model = BoostingClassifier(n_estimators=80, learning_rate=0.5, max_depth=1)
    return model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])


@pytest.mark.parametrize("how", ["method", "function", "estimator"])
def test_the_history_is_drawn_with_its_best_round(watched, how):
    draw = {
        "method": lambda: watched.history_.plot(),
        "function": lambda: plotting.plot_history(watched.history_),
        "estimator": lambda: plotting.plot_history(watched),
    }
    ax = draw[how]()
    training, validation, best = ax.get_lines()
    np.testing.assert_array_equal(training.get_xdata(), np.arange(1, 81))
    np.testing.assert_array_equal(training.get_ydata(), watched.history_.training)
    np.testing.assert_array_equal(validation.get_ydata(), watched.history_.validation)
    lowest = int(watched.history_.validation.argmin()) + 1
    assert best.get_xdata() == [lowest, lowest]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == f"training (last: {watched.history_.training[-1]:#.4g})"
    assert labels[1].startswith("validation (last: ")
    assert labels[2] == f"best round: {lowest}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rounds", "loss")
    ax.figure.canvas.draw()


@pytest.mark.slow
def test_every_metric_of_every_set_is_drawn():
    X, y = load_breast_cancer(return_X_y=True)
    model = BoostingClassifier(n_estimators=30, metric=["roc_auc", "loss"])
    model.fit(X[:300], y[:300], eval_set=[(X[:300], y[:300]), (X[300:], y[300:])])
    history = model.history_
    axes = history.plot()
    assert [ax.get_ylabel() for ax in axes] == ["roc_auc", "loss"]
    area, loss = ([line.get_ydata() for line in ax.get_lines()] for ax in axes)
    best = int(history.validation.argmax()) + 1
    expected = [history.evals[f"validation_{i}"]["roc_auc"] for i in range(2)]
    for found, values in zip(area, [*expected, [0, 1]], strict=True):
        np.testing.assert_array_equal(found, values)
    assert axes[0].get_lines()[-1].get_xdata() == [best, best]
    losses = [history.evals[f"validation_{i}"]["loss"] for i in range(2)]
    for found, values in zip(loss, [history.training, *losses], strict=True):
        np.testing.assert_array_equal(found, values)
    colours = {line.get_color() for line in axes[1].get_lines()}
    assert len(colours) == 3
    axes[0].figure.canvas.draw()
    _, ax = plt.subplots()
    assert history.plot(ax=ax) is ax
    assert ax.get_ylabel() == "roc_auc"
    assert history.plot(metric="loss").get_ylabel() == "loss"
    with pytest.raises(ValueError, match=r"metric must be one of \['roc_auc', 'loss'\]; got 'f1'"):
        history.plot(metric="f1")


def test_a_history_without_validation_has_one_curve_and_draws_on_the_axes_given():
    X, y = load_diabetes(return_X_y=True)
    model = BoostingRegressor(n_estimators=20, max_depth=1).fit(X, y)
    _, ax = plt.subplots()
    assert model.history_.plot(ax=ax) is ax
    (line,) = ax.get_lines()
    np.testing.assert_array_equal(line.get_ydata(), model.history_.training)


def test_an_empty_history_says_how_to_fill_it(two):
    _, X, y = two
    model = BoostingClassifier(n_estimators=3, max_depth=1).fit(X, y)
    for draw in (model.history_.plot, lambda: plotting.plot_history(model)):
        with pytest.raises(ValueError, match="history is empty") as caught:
            draw()
        for way in ("early_stopping=True", "callbacks", "X_val and y_val"):
            assert way in str(caught.value)
    assert not plt.get_fignums()  # no empty picture is left behind


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_shape_functions_of_a_regressor_are_its_tables(loss):
    X, y = load_diabetes(return_X_y=True)
    model = BoostingRegressor(loss, n_estimators=30, learning_rate=0.5, max_depth=1).fit(X, y)
    figure = plotting.plot_shape_functions(model, n_features=2, X=X)
    top = np.argsort(-model.feature_importances_, kind="stable")[:2]
    for f, ax in zip(top, figure.axes, strict=True):
        steps = ax.patches[0].get_data()
        inside = (steps.edges[:-1] + steps.edges[1:]) / 2
        expected = model.model_.shape_function(int(f))(inside)[:, 0]
        np.testing.assert_array_equal(steps.values, expected)
    assert not figure.legends
    figure.canvas.draw()


def test_shape_functions_of_a_boosted_classifier_name_the_classes():
    X, y = load_wine(return_X_y=True)
    model = BoostingClassifier(n_estimators=10, max_depth=1).fit(X, np.array(["a", "b", "c"])[y])
    figure = plotting.plot_shape_functions(model, n_features=3)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "c"]
    figure.canvas.draw()


@pytest.mark.parametrize("draw", [plotting.plot_learning_curve, plotting.plot_margins])
def test_curves_of_classes_refuse_a_regressor_and_leave_no_empty_picture(draw):
    X, y = load_diabetes(return_X_y=True)
    model = BoostingRegressor(n_estimators=2, max_depth=1).fit(X, y)
    with pytest.raises(TypeError, match=r"boosted classifier .*; got BoostingRegressor"):
        draw(model, X, y)
    assert not plt.get_fignums()
