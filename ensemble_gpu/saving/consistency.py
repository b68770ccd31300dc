"""Whether the parts of an estimator that was read fit each other.

A model checks itself when it is made. Here are the facts that concern an estimator: as many
features, outputs and classes everywhere, parameters that it takes, members that are estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.answers import Always, Answers, Coded, Each, parts, uncoded
from ensemble_gpu.model.committee import LINK_NUMBERS, CodedVoice, Voice
from ensemble_gpu.model.link import INCREASING, LINKS, MARGINS
from ensemble_gpu.saving.container import refuse

# Threads that a file may ask for.
MOST_THREADS = 1024
# Additions of stumps to intervals of tables: a few seconds.
MOST_WORK = 2.0**33


def check_estimator(estimator: Any, fitted: bool, path: str) -> None:
    """Refuse an estimator that would fail, or worse, when it is used."""
    _check_parameters(estimator, path)
    if not fitted:
        return
    for fact in (_features, _classes, _links, _categories, _members, _background):
        fact(estimator, path)


def _check_parameters(estimator: Any, path: str) -> None:
    """As a fit does; wherever the model was trained, that device need not be here."""
    n_jobs = getattr(estimator, "n_jobs", None)
    if type(n_jobs) is int and abs(n_jobs) > MOST_THREADS:
        refuse(f"{path} has n_jobs={n_jobs}, and may have {MOST_THREADS} at the most")
    if not hasattr(estimator, "_check_parameters"):
        return
    anywhere = copy(estimator)
    if isinstance(getattr(anywhere, "device", None), str):
        anywhere.device = None
    try:
        anywhere._check_parameters()
    except (ValueError, TypeError, AttributeError) as error:
        refuse(f"{path} has a parameter that it does not take ({error})")


def _features(estimator: Any, path: str) -> None:
    p, model = getattr(estimator, "n_features_in_", None), getattr(estimator, "model_", None)
    if model is not None and model.n_features != p:
        refuse(f"{path} has n_features_in_={p}, and its model {model.n_features} features")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and (
        len(names) != p or names.dtype != object or not all(type(n) is str for n in names)
    ):
        refuse(f"{path} has {p} features, and feature_names_in_ that are not {p} strings")
    shares = vars(estimator).get("feature_importances_")
    if shares is not None and len(shares) != p:
        refuse(f"{path} has {p} features, and {len(shares)} feature_importances_")


def _classes(estimator: Any, path: str) -> None:
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        return
    try:
        distinct = len(set(classes.tolist())) == len(classes)
    except TypeError:
        distinct = False
    if not distinct:
        refuse(f"{path} has classes_ that are not distinct labels")
    n = getattr(estimator, "n_classes_", len(classes))
    if n != len(classes):
        refuse(f"{path} has n_classes_={n}, and {len(classes)} classes_")
    model = getattr(estimator, "model_", None)
    if model is None:
        return
    # Shares of the classes have an output for each; sums of two classes one for both.
    sums = hasattr(estimator, "link_")
    outputs = 1 if sums and len(classes) == 2 else len(classes)
    if model.n_outputs != outputs or (sums and len(classes) < 2):
        refuse(f"{path} has {len(classes)} classes, and its model {model.n_outputs} outputs")


def _links(estimator: Any, path: str) -> None:
    link = getattr(estimator, "link_", None)
    if link is None:
        return
    if hasattr(estimator, "classes_") != (LINKS[link].probabilities is not None):
        refuse(f"{path} cannot have link_={link!r}")
    several = estimator.model_.n_outputs > 1 and not hasattr(estimator, "classes_")
    if several and link != INCREASING:
        refuse(f"{path} has {estimator.model_.n_outputs} outputs, and link_={link!r}")
    if not getattr(estimator, "scale_", 1.0) > 0.0:
        refuse(f"{path} has scale_={estimator.scale_!r}, which has to be positive")


def _categories(estimator: Any, path: str) -> None:
    known = getattr(estimator, "_categories", None)
    if known is None:
        return
    p = estimator.n_features_in_
    for f, values in known.values.items():
        if f >= p or not (np.diff(values) > 0).all() or np.isnan(values).any():
            refuse(f"{path} has categories of feature {f} that are not ascending")
    for f, labels in known.labels.items():
        if f not in known.values:
            refuse(f"{path} has labels of feature {f}, which has no categories")
        try:
            known.names(f)
            len(set(labels))
        except (IndexError, ValueError, TypeError, OverflowError) as error:
            refuse(f"{path} has labels of feature {f} that do not fit ({error})")


def _members(estimator: Any, path: str) -> None:
    """The learners of a bag, and the classifier behind a threshold."""
    if not hasattr(estimator, "estimator_"):
        return
    if not hasattr(estimator, "estimators_"):
        check_learner(estimator.estimator_, estimator.n_features_in_, f"{path}.estimator_")
        if len(estimator.classes_) != 2 or len(estimator.estimator_.classes_) != 2:
            refuse(f"{path} is for two classes")
        return
    learners, features = estimator.estimators_, estimator.estimators_features_
    if not learners or not len(learners) == len(features) == len(estimator.bags_):
        refuse(f"{path} has {len(learners)} learners, and features or bags of others")
    for k, (learner, own) in enumerate(zip(learners, features, strict=True)):
        if not len(own) or own.min() < 0 or own.max() >= estimator.n_features_in_:
            refuse(f"{path}.estimators_features_.{k} are no features")
        check_learner(learner, len(own), f"{path}.estimators_.{k}")
        classes = getattr(estimator, "classes_", None)
        if classes is not None:
            check_numbered(learner, len(classes), f"{path}.estimators_.{k}")


def _background(estimator: Any, path: str) -> None:
    """Weights of training rows: one a piece between thresholds, and all those of the model."""
    known, model = getattr(estimator, "background_", None), getattr(estimator, "model_", None)
    if known is None:
        return
    n, starts, counts = len(known.features), known.starts, np.diff(known.starts)
    laid_out = (
        len(starts) == n + 1
        and starts[0] == 0
        and starts[-1] == len(known.thresholds)
        and np.all(counts >= 0)
        and len(known.weight) == len(known.thresholds) + n
        and len(known.missing) == n
        and len(set(known.features.tolist())) == n
    )
    if not laid_out:
        refuse(f"{path}.background_ has arrays whose lengths do not fit each other")
    weights = np.concatenate([known.weight, known.missing])
    if not np.all((weights >= 0.0) & (weights < np.inf)):
        refuse(f"{path}.background_ has weights that are not finite and >= 0")
    if not isinstance(model, AdditiveModel):
        refuse(f"{path} has a background_, which is of a sum of stumps")
    pieces = {f: (thresholds, weight.sum() + missing) for f, thresholds, weight, missing in known}
    for f, table in model.tables.items():
        thresholds, total = pieces.get(f, (np.zeros(0), 0.0))
        if not 0.0 < total < np.inf or not np.all(np.isin(table.thresholds, thresholds)):
            refuse(f"{path}.background_ does not have the thresholds of feature {f}")


def check_committee(model: Any, path: str) -> None:
    """Learners of a committee answer as its voice asks them."""
    voice = model.voice
    binary = getattr(voice, "binary", voice)
    least = getattr(binary, "least", None)
    if least is not None and not 0.0 < least < 0.5:
        refuse(f"{path}.voice has least={least!r}, which has to be between 0 and 1/2")
    if getattr(voice, "link", MARGINS) not in LINK_NUMBERS:
        refuse(f"{path}.voice cannot have link={voice.link!r}")
    for k, learner in enumerate(model.learners):
        own = parts(learner)
        if not own or (isinstance(voice, Answers) and voice.n_outputs % len(own)):
            refuse(f"{path}.learners.{k} has {len(own)} parts for {voice.n_outputs} outputs")
        if isinstance(voice, Voice) and len(own) > 1:
            refuse(f"{path}.learners.{k} has {len(own)} parts, and may have one")
        for part in own:
            _check_part(part, model, least is not None, f"{path}.learners.{k}")


def _check_part(part: Any, model: Any, confident: bool, path: str) -> None:
    coded = isinstance(model.voice, CodedVoice)
    if isinstance(part, Coded) != coded or (coded and len(part.code) != model.n_outputs):
        refuse(f"{path} has no code of {model.n_outputs} classes where it needs one, or has one")
    learner = uncoded(part)
    if isinstance(learner, Each | Coded):
        refuse(f"{path} is no estimator")
    if isinstance(learner, Always):
        return
    check_learner(learner, model.n_features, path)
    classes = getattr(learner, "classes_", None)
    if classes is not None and classes.dtype.kind not in "iu":
        refuse(f"{path} has classes that are no numbers")
    if confident and not hasattr(learner, "predict_proba"):
        refuse(f"{path} has no probabilities")


def check_votes(model: Any, path: str) -> None:
    """Voters read features that there are."""
    p = model.n_features
    for k, voter in enumerate(model.voters):
        if getattr(voter, "source", None) is not None:
            check_learner(voter.source, p, f"{path}.voters.{k}")
        elif hasattr(voter, "source") and voter.number >= p:
            refuse(f"{path}.voters.{k} is column {voter.number} of {p}")
        elif max(getattr(voter, "f", 0), getattr(voter, "g", 0)) >= p:
            refuse(f"{path}.voters.{k} has features beyond the {p} of the model")


def check_work(rounds: Any, path: str) -> None:
    """Refuse stumps whose sum would take too long: each is added to all intervals of its table."""
    if not len(rounds) or rounds.threshold.shape != rounds.feature.shape:
        return  # of another shape: the model refuses them
    _, feature, n = np.unique(rounds.feature, return_inverse=True, return_counts=True)
    if (n.astype(float) ** 2).sum() <= MOST_WORK:
        return
    order = np.lexsort((rounds.threshold, feature))
    owner, threshold = feature[order], rounds.threshold[order]
    new = np.append(True, (np.diff(owner) != 0) | (np.diff(threshold) != 0.0))
    intervals = np.bincount(owner[new], minlength=len(n)) + 1.0
    if (n * intervals).sum() > MOST_WORK:
        refuse(f"{path} has {len(rounds)} stumps with too many thresholds to add them up")


# What must hold of a value besides the checks of its fields: by its name in a file.
CHECKS: dict[str, Callable[[Any, str], None]] = {
    "Rounds": check_work,
    "Committee": check_committee,
    "VoteModel": check_votes,
}


def check_learner(learner: Any, n_features: int, path: str) -> None:
    """Refuse what cannot predict rows of so many features."""
    if not hasattr(learner, "predict") or isinstance(learner, type):
        refuse(f"{path} is no estimator")
    if not any(hasattr(learner, name) for name in ("model_", "estimator_", "classes_")):
        refuse(f"{path} is not fitted")
    if getattr(learner, "n_features_in_", n_features) != n_features:
        refuse(f"{path} has {learner.n_features_in_} features, and is given {n_features}")


def check_numbered(learner: Any, n_classes: int, path: str) -> None:
    """The classes of a learner in a bag are numbers of classes."""
    classes = getattr(learner, "classes_", None)
    if classes is None or classes.dtype.kind not in "iu":
        refuse(f"{path} has no classes that are numbers")
    if classes.min() < 0 or classes.max() >= n_classes:
        refuse(f"{path} has classes beyond the {n_classes} of its bag")
