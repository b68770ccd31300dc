"""The lectures' claims hold, on a reduced version of each experiment, and are drawn and printed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from examples.gallery import EXPERIMENTS

SCRIPTS = Path(__file__).parents[2] / "examples"


@pytest.mark.long
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_claims_of_the_lecture_hold(name, tmp_path):
    found = import_module(f"examples.{name}").run(small=True)
    assert [claim.says for claim in found.claims if not claim.holds] == [], str(found)
    assert found.title in str(found)
    found.save(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


def test_a_claim_that_fails_is_printed_as_one():
    from examples.experiment import Claim, Experiment

    found = Experiment("T", ["a"], [[1.0]], [Claim("so", "not so", False)], lambda figure: None)
    assert "DISAGREES: so" in str(found)


def test_every_script_that_has_claims_is_in_the_gallery():
    scripts = {path.stem for path in SCRIPTS.glob("*.py") if "report(run)" in path.read_text()}
    assert scripts - {"experiment"} == set(EXPERIMENTS)
