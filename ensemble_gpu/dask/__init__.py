"""Estimators on a Dask cluster (extra `dask`): the model of the local fit, for any partitioning."""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("ensemble_gpu.dask needs Dask: pip install 'ensemble_gpu[dask]'.") from error

from ensemble_gpu.dask.driver import WorkersLost
from ensemble_gpu.dask.estimators import (
    DaskAdaBoostClassifier,
    DaskBoostingClassifier,
    DaskBoostingRegressor,
    DaskRandomForestClassifier,
    DaskRandomForestRegressor,
)

__all__ = [
    "DaskAdaBoostClassifier",
    "DaskBoostingClassifier",
    "DaskBoostingRegressor",
    "DaskRandomForestClassifier",
    "DaskRandomForestRegressor",
    "WorkersLost",
]
