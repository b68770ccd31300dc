"""Ours and the peers with their defaults: what each is given, and nothing is set but the seed.

Every contestant gets the same table (sets.py): numbers with NaN for missing ones, and pandas
categories. Those that take categories get them as they document it: HistGradientBoosting, LightGBM,
XGBoost, EBM and ours by the dtype, CatBoost as strings named by `cat_features`. The others get one
column a category; scikit-learn's AdaBoost and forests also get medians for missing numbers.
Everybody has the same threads and prints nothing. Packages are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from bench.sets import CLASSIFICATION, REGRESSION, Table

SEED = 0
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Contestant:
    """`package` is whose version decides (None: ours, never taken from the cache).

    `estimators` is the class a task; `settings` are seed and silence; `threads` names the parameter
    of threads (None: it has none); `numbers`: it takes no categories and no missing values;
    `most_classes`: with more a fit takes minutes to hours, and it is left out.
    """

    name: str
    package: str | None
    estimators: Mapping[str, str]
    settings: Params
    threads: str | None = "n_jobs"
    numbers: bool = False
    most_classes: int | None = None

    @property
    def ours(self) -> bool:
        return self.package is None

    @property
    def release(self) -> str:
        return "" if self.package is None else f"{self.package} {version(self.package)}"

    def kind(self, task: str) -> Any:
        """The class."""
        module, name = self.estimators[task].rsplit(".", 1)
        return getattr(import_module(module), name)

    def fits_in_time(self, data: Table) -> bool:
        """Whether there are few enough classes."""
        few = data.task == REGRESSION or self.most_classes is None
        return few or data.y.max() < self.most_classes

    def takes(self, task: str, name: str) -> bool:
        """Whether it has a parameter of this name."""
        return name in self.kind(task)().get_params()

    def estimator(self, task: str, X: pd.DataFrame, params: Params, threads: int) -> Any:
        """Not fitted yet, for tables like X."""
        told = {**self.settings, **params}
        if self.threads:
            told[self.threads] = threads
        if self.package == "catboost":
            told["cat_features"] = list(X.select_dtypes("category"))
        model = self.kind(task)(**told)
        if self.numbers:
            return make_pipeline(_as_numbers(SimpleImputer(strategy="median")), model)
        if self.ours and "categorical_features" not in model.get_params():
            return make_pipeline(_as_numbers("passthrough"), model)
        return model

    def view(self, X: pd.DataFrame) -> pd.DataFrame:
        """X in the form that the package wants."""
        if self.package != "catboost":
            return X
        texts = X.select_dtypes("category").astype(object).fillna("missing")
        return pd.concat([X.drop(columns=texts.columns), texts], axis=1)[list(X.columns)]


def _as_numbers(numbers: Any) -> Pipeline:
    """One column a category; `numbers` is what happens to the other columns."""
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [("categories", one_hot, make_column_selector(dtype_include="category"))],
        remainder=numbers,
    )


def _both(module: str, name: str) -> dict[str, str]:
    return {
        CLASSIFICATION: f"{module}.{name}Classifier",
        REGRESSION: f"{module}.{name}Regressor",
    }


def _classifier(path: str) -> dict[str, str]:
    return {CLASSIFICATION: path}


_SEED = {"random_state": SEED}
_SKLEARN = "scikit-learn"
LIGHTGBM = "LightGBM"

CONTESTANTS = {
    c.name: c
    for c in (
        Contestant("AdaBoost", None, _classifier("ensemble_gpu.AdaBoostClassifier"), _SEED),
        Contestant("Boosting", None, _both("ensemble_gpu", "Boosting"), _SEED),
        Contestant("RandomForest", None, _both("ensemble_gpu", "RandomForest"), _SEED),
        Contestant(LIGHTGBM, "lightgbm", _both("lightgbm", "LGBM"), {**_SEED, "verbosity": -1}),
        Contestant(
            "XGBoost", "xgboost-cpu", _both("xgboost", "XGB"),
            {**_SEED, "verbosity": 0, "enable_categorical": True},
        ),
        Contestant(
            "CatBoost", "catboost", _both("catboost", "CatBoost"),
            {**_SEED, "logging_level": "Silent", "allow_writing_files": False},
            threads="thread_count",
        ),
        Contestant(
            "HistGradientBoosting", _SKLEARN, _both("sklearn.ensemble", "HistGradientBoosting"),
            _SEED, threads=None,
        ),
        Contestant(
            "sklearn AdaBoost", _SKLEARN, _both("sklearn.ensemble", "AdaBoost"), _SEED,
            threads=None, numbers=True,
        ),
        Contestant(
            "sklearn RandomForest", _SKLEARN, _both("sklearn.ensemble", "RandomForest"), _SEED,
            numbers=True,
        ),
        Contestant(
            "EBM", "interpret-core", _both("interpret.glassbox", "ExplainableBoosting"), _SEED,
            most_classes=2,  # three classes of 178 rows take more than two minutes a fit
        ),
    )
}  # fmt: skip
OURS = tuple(name for name, c in CONTESTANTS.items() if c.ours)
PEERS = tuple(name for name, c in CONTESTANTS.items() if not c.ours)
