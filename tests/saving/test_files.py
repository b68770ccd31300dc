"""Files: whole or not there, read where they are."""

from __future__ import annotations

import stat
import sys

import numpy as np
import pytest

import ensemble_gpu as eg
from ensemble_gpu.saving import files
from ensemble_gpu.saving.files import from_bytes, replace_file, to_bytes
from tests.saving.cases import CODES, fitted


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"old")

    def parts():
        yield b"new"
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replace_file(path, parts())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_estimator_that_cannot_be_saved_leaves_no_file(tmp_path):
    with pytest.raises(TypeError, match="cannot be saved"):
        eg.save(print, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_permissions_are_those_of_the_file_before_or_of_any_new_file(tmp_path):
    path, other = tmp_path / "m.safetensors", tmp_path / "other"
    fitted("ridge").save(path)
    other.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
    path.chmod(0o640)
    fitted("ridge").save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_mapped_model_survives_a_save_over_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SMALL", 0)
    path, estimator = tmp_path / "m.safetensors", fitted("forest")
    estimator.save(path)
    loaded = eg.load(path)
    assert isinstance(loaded.model_.nodes.left.base, np.ndarray)  # a view of the map
    fitted("ridge").save(path)
    assert np.array_equal(loaded.predict_proba(CODES), estimator.predict_proba(CODES))
    assert np.array_equal(
        eg.load(path, in_place=False).predict(CODES[:, :4]), eg.load(path).predict(CODES[:, :4])
    )


def test_the_same_estimator_gives_the_same_bytes():
    assert to_bytes(fitted("forest")) == to_bytes(from_bytes(to_bytes(fitted("forest"))))


@pytest.mark.parametrize("call", [lambda p: fitted("ridge").save(p), eg.load, eg.read_header])
def test_another_suffix_is_refused(call, tmp_path):
    with pytest.raises(ValueError, match=r"path must end with \.safetensors or \.json; got"):
        call(tmp_path / "m.pkl")


def test_other_libraries_read_the_file(tmp_path):
    from safetensors.numpy import load_file

    path, model = tmp_path / "m.safetensors", fitted("AdaBoost, labels").model_
    fitted("AdaBoost, labels").save(path)
    arrays = load_file(path)
    assert np.array_equal(arrays["model_.rounds.threshold"], model.rounds.threshold)
    assert np.array_equal(arrays["model_.tables.values"], model.joined.values)
