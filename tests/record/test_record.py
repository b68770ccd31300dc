"""No model on record changes: whatever is rebuilt inside, the same data gives the same bits."""

from __future__ import annotations

import pytest

from ensemble_gpu import use_engine
from tests.record.fits import FITS, GROUPS, comparable, read_record

RECORDED = read_record()


def test_the_record_holds_these_fits_in_these_groups():
    for group in GROUPS:
        here = {name for name, fit in FITS.items() if fit.group == group}
        there = set(RECORDED[group])
        assert here == there, (
            f"{group}: not on record {sorted(here - there)}, on record only {sorted(there - here)}"
        )


@pytest.mark.parametrize("name", FITS)
def test_the_model_is_the_one_on_record(name):
    fit = FITS[name]
    reason = comparable(fit.group, RECORDED)
    if reason:
        pytest.skip(reason)
    with use_engine("cpu"):
        found = fit.fingerprint()
    recorded = RECORDED[fit.group].get(name, "nothing")
    if found != recorded:
        pytest.fail(
            f"{name!r} gives another model: {found[:16]}, on record is {recorded[:16]}.\n{fit}",
            pytrace=False,
        )
