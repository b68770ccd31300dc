"""The folder for kernels among the temporary files: nobody else can put programs there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from ensemble_gpu.kernels.temporary import private_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="about users of Unix")


@pytest.fixture
def parent(tmp_path, monkeypatch) -> Path:
    """A folder of temporary files, open to all, where each may rename its own only."""
    tmp_path.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def found() -> str | None:
    return private_folder.__wrapped__()


def usual(parent: Path) -> Path:
    return parent / f"ensemble_gpu-{os.getuid()}"


def test_the_folder_is_closed_to_others_and_found_again(parent):
    assert found() == str(usual(parent))
    assert usual(parent).stat().st_mode & 0o777 == 0o700
    assert found() == str(usual(parent))


def test_a_folder_that_others_can_write_to_is_not_used(parent):
    usual(parent).mkdir()
    usual(parent).chmod(0o777)
    other = found()
    assert other is not None
    assert Path(other).parent == parent
    assert other != str(usual(parent))
    assert Path(other).stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(parent):
    (parent / "elsewhere").mkdir(mode=0o700)
    usual(parent).symlink_to(parent / "elsewhere")
    assert found() not in (None, str(usual(parent)))


def test_a_file_in_the_way_is_no_hindrance(parent):
    usual(parent).write_text("")
    assert found() not in (None, str(usual(parent)))


@pytest.mark.skipif(hasattr(os, "getuid") and os.getuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_not_used(parent):
    usual(parent).mkdir(mode=0o700)
    os.chown(usual(parent), 12345, 12345)
    assert found() not in (None, str(usual(parent)))


def test_a_place_where_others_can_rename_our_folder_is_not_used(parent):
    parent.chmod(0o777)
    assert found() is None
