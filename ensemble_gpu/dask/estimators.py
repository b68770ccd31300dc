"""Estimators whose X is a Dask Array or DataFrame."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import dask
from distributed import Client, default_client
from sklearn.base import clone

from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.boosting.adaboost import AdaBoostClassifier
from ensemble_gpu.boosting.estimators import BoostingClassifier, BoostingRegressor
from ensemble_gpu.boosting.evaluation import GivenSet, given_sets
from ensemble_gpu.dask.collections import is_collection, partitions, whole
from ensemble_gpu.dask.driver import Driver
from ensemble_gpu.dask.predicting import predicted
from ensemble_gpu.data.parameters import check_integer
from ensemble_gpu.distributed.fitting import check_shareable
from ensemble_gpu.estimators.reading import GivenRows

OWN = ("client", "retries")

_ABOUT = """{name} on a Dask cluster: the model of the local fit, bit for bit.

    `fit` takes Dask Arrays or DataFrames of any partitions; the rows stay where they are. The
    methods that predict are lazy for Dask collections, and as ever for others. A worker that is
    lost is replaced: the fit goes on from the rounds that it has found. Callbacks and validation
    rows are with one of the workers.

    Parameters
    ----------
    client : distributed.Client or None
        None: the current one
    retries : int, default=3
        How often workers may be lost before the fit ends with an error
    **parameters : those of {name}
        `n_jobs` None: the threads of each Dask worker. Not for several workers: `estimator`,
        `warm_start`, `oob_score`, `capacity`, and Checkpoint among the callbacks
    """


def _constructor(local: type) -> Callable[..., None]:
    """`__init__` with the parameters of the local estimator, and those of the cluster."""
    known = inspect.signature(local.__init__)  # type: ignore[misc]

    def __init__(self: Any, *args: Any, client: Any = None, retries: int = 3, **more: Any) -> None:
        local.__init__(self, *args, **more)  # type: ignore[misc]
        self.client, self.retries = client, retries

    own = [
        inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None),
        inspect.Parameter("retries", inspect.Parameter.KEYWORD_ONLY, default=3),
    ]
    parameters = [*known.parameters.values(), *own]
    __init__.__signature__ = known.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__


class DaskEstimator:
    """What an estimator does on a cluster; `_local` is the class of its model."""

    client: Any
    retries: int
    _local: ClassVar[type]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "_local" in vars(cls):
            cls.__doc__ = _ABOUT.format(name=cls._local.__name__)

    def _client(self) -> Client:
        if self.client is None:
            try:
                return default_client()
            except ValueError as error:
                raise ValueError(
                    "client must be a distributed.Client where there is no current one; got None. "
                    "distributed.Client() starts a cluster on this machine."
                ) from error
        if not isinstance(self.client, Client):
            raise TypeError(
                f"client must be None or a distributed.Client; got {type(self.client).__name__}."
            )
        return self.client

    def _unfitted(self) -> Any:
        """The local estimator with the same parameters."""
        own = self.get_params(deep=False)  # type: ignore[attr-defined]
        return self._local(**{k: v for k, v in own.items() if k not in OWN})

    def __sklearn_clone__(self) -> Any:
        """The same parameters, unfitted; a client is shared, not copied."""
        plain = clone(self._unfitted()).get_params(deep=False)
        kind: Any = type(self)
        return kind(client=self.client, retries=self.retries, **plain)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle knows of no client: that of the process that reads it is used."""
        state: Any = super().__getstate__()
        return state | {"client": None}

    def to_local(self) -> Any:
        """The fitted model as a plain estimator, which knows of no cluster."""
        local = self._unfitted()
        fitted = {k: v for k, v in vars(self).items() if k not in vars(local) and k not in OWN}
        local.__dict__.update(fitted)
        return local

    def _fit_parts(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        init_score: Any,
        sets: Sequence[GivenSet],
        more: dict[str, Any],
    ) -> Any:
        check_integer("retries", self.retries, 0)
        client, local = self._client(), self._unfitted()
        local._check_parameters()
        check_shareable(local)
        if local.random_state is None:  # drawn once, for every attempt at the fit
            local.random_state = secrets.randbits(31)
        parts = client.compute(partitions(X, y, sample_weight, init_score))
        first, others = self._validation(client, sets)
        driver = Driver(client, local, parts, self.retries)
        try:
            fitted = driver(more | first, more | others)
        finally:
            for future in parts:
                future.release()
        self._forget()  # type: ignore[attr-defined]
        given = set(local.get_params(deep=False))
        self.__dict__.update({k: v for k, v in vars(fitted).items() if k not in given})
        self.events_ = tuple(driver.events)
        return self

    def _validation(
        self, client: Client, sets: Sequence[GivenSet]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Validation sets for the first rank, and a row of each for others: they ask the first."""
        if not sets:
            return {}, {}
        names = {"eval_names": [one.name for one in sets]}
        made = [dask.delayed(_parts)(*map(whole, _parts_of(one.rows))) for one in sets]
        heads = [dask.delayed(_head)(one) for one in made]
        return (
            names | {"eval_set": client.compute(made)},
            names | {"eval_set": client.compute(heads)},
        )

    def _predicted(self, method: str, X: Any) -> Any:
        if not is_collection(X):
            return getattr(self._local, method)(self, X)
        return predicted(self.to_local(), method, X)

    def predict(self, X: Any) -> Any:
        """As of the local estimator; a Dask Array, lazy, where X is a Dask collection."""
        return self._predicted("predict", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """As of the local estimator; Dask collections are evaluated chunk by chunk."""
        if not is_collection(X):
            return self._local.score(self, X, y, sample_weight)  # type: ignore[attr-defined]
        given = [whole(a) if is_collection(a) else a for a in (y, sample_weight)]
        local = self.to_local()
        prediction, y, sample_weight = dask.compute(predicted(local, "predict", X), *given)
        local.predict = lambda X: prediction
        return float(local.score(None, y, sample_weight))


def _parts_of(rows: GivenRows) -> tuple[Any, ...]:
    return rows.X, rows.y, rows.sample_weight, rows.init_score


def _parts(*parts: Any) -> tuple[Any, ...]:
    return parts


def _head(one: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of a validation set, of equal weight: its own may be zero."""
    X, y, _, offset = one
    return X[:1], y[:1], None, None if offset is None else offset[:1]


def _refuse(resume: Any) -> None:
    if resume is not None:
        raise ValueError(
            f"resume must be None on a cluster, where a fit goes on by itself; got {resume!r}."
        )


class _Boosted(DaskEstimator):
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        init_score: Any = None,
        init_score_val: Any = None,
        eval_set: Any = None,
        eval_names: Any = None,
        stop_on: Any = None,
        resume: None = None,
    ) -> Any:
        """Boost on Dask collections X [n, p] and y [n]; all parameters as of the local estimator.

        What belongs to a row must be in the same partition; arrays of known chunks are rechunked as
        X. Validation rows, Dask collections or not, are brought to one worker.

        Returns
        -------
        self
        """
        _refuse(resume)
        short = GivenRows(X_val, y_val, sample_weight_val, init_score_val)
        sets = given_sets(eval_set, eval_names, short)
        more = {} if stop_on is None else {"stop_on": stop_on}
        return self._fit_parts(X, y, sample_weight, init_score, sets, more)


class _Forest(DaskEstimator):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, resume: None = None) -> Any:
        """Grow on Dask collections X [n, p] and y [n]; all parameters as of the local estimator.

        Every worker gets the codes of all rows, one byte a cell, and grows trees of its own.

        Returns
        -------
        self
        """
        _refuse(resume)
        return self._fit_parts(X, y, sample_weight, None, (), {})


class _Classifier(DaskEstimator):
    def predict_proba(self, X: Any) -> Any:
        """As of the local estimator; a Dask Array, lazy, where X is a Dask collection."""
        return self._predicted("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """As of the local estimator; a Dask Array, lazy, where X is a Dask collection."""
        return self._predicted("predict_log_proba", X)


class _AdditiveClassifier(_Classifier):
    def decision_function(self, X: Any) -> Any:
        """As of the local estimator; a Dask Array, lazy, where X is a Dask collection."""
        return self._predicted("decision_function", X)


class DaskAdaBoostClassifier(_Boosted, _AdditiveClassifier, AdaBoostClassifier):
    _local = AdaBoostClassifier
    __init__ = _constructor(AdaBoostClassifier)


class DaskBoostingClassifier(_Boosted, _AdditiveClassifier, BoostingClassifier):
    _local = BoostingClassifier
    __init__ = _constructor(BoostingClassifier)


class DaskBoostingRegressor(_Boosted, BoostingRegressor):
    _local = BoostingRegressor
    __init__ = _constructor(BoostingRegressor)


class DaskRandomForestClassifier(_Forest, _Classifier, RandomForestClassifier):
    _local = RandomForestClassifier
    __init__ = _constructor(RandomForestClassifier)


class DaskRandomForestRegressor(_Forest, RandomForestRegressor):
    _local = RandomForestRegressor
    __init__ = _constructor(RandomForestRegressor)
