"""Why a row is predicted as it is: `python examples/explain.py [picture.png]`.

Diabetes after a year: a sum of stumps and a forest of trees, explained feature by feature. The
values of a row and the base value add up to its prediction. With the name of a picture the row is
drawn (needs matplotlib).
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from ensemble_gpu import BoostingRegressor, RandomForestRegressor


def main(arguments):
    frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X, X_test, y, y_test = train_test_split(frame, y, random_state=0)
    for model in (BoostingRegressor(max_depth=1), RandomForestRegressor(100, random_state=0)):
        model.fit(X, y)
        local = model.explain(X_test)
        np.testing.assert_allclose(local.scores[:, 0], model.predict(X_test), atol=1e-9)
        print(type(model.model_).__name__, "- the first test row:")
        order = np.argsort(-np.abs(local.values[0, :, 0]))
        print(f"  {'base value':<22} {local.base_values[0]:+8.2f}")
        for f in order[:4]:
            name = f"{local.feature_names[f]} = {local.data[0, f]:g}"
            print(f"  {name:<22} {local.values[0, f, 0]:+8.2f}")
        print(f"  {'prediction':<22} {local.scores[0, 0]:+8.2f}, was {y_test.iloc[0]:g}")
        whole = model.explain_global(X_test, y_test, metric="r2", n_repeats=3)
        print(whole.to_frame().sort_values("permutation", ascending=False).head(4).round(3))
        if arguments:
            local.plot(0).figure.savefig(arguments[0])


if __name__ == "__main__":
    main(sys.argv[1:])
