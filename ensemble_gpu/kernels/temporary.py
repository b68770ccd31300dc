"""A folder of the user's own among the temporary files: where compiled kernels go at the last.

numba keeps them in NUMBA_CACHE_DIR, beside the sources or in the user's cache folder. A container
often has neither of them writable. Cached kernels are loaded as programs, so nobody else may put
files there: the folder belongs to this user, is closed to all others, and lies where no other user
can put another in its place. It has one name, so that later processes find what it holds; where
somebody else has taken the name, this process has a folder of another name for itself.
"""

from __future__ import annotations

import atexit
import getpass
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

NAME = "ensemble_gpu-"


@cache
def private_folder() -> str | None:
    """The folder, made where it is not there yet; None where there is no safe place for it."""
    try:
        parent = Path(tempfile.gettempdir())
        if not _keeps_names(parent):
            return None
        path = parent / f"{NAME}{_user()}"
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        return str(path) if _is_private(path) else _for_this_process(parent)
    except (OSError, KeyError):  # no temporary folder that can be written, no name of the user
        return None


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()


def _keeps_names(parent: Path) -> bool:
    """Whether no other user can rename or replace a folder of ours in it."""
    if not hasattr(os, "getuid"):
        return True  # such a system has a temporary folder a user
    found = parent.stat()
    shared = bool(found.st_mode & 0o022) and not found.st_mode & stat.S_ISVTX
    return not shared and found.st_uid in (0, os.getuid())


def _is_private(path: Path) -> bool:
    """A folder, no link to one, that is ours and closed to others."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)


def _for_this_process(parent: Path) -> str:
    path, process = tempfile.mkdtemp(prefix=NAME, dir=parent), os.getpid()

    def remove() -> None:
        if os.getpid() == process:  # and not a child of it
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(remove)
    return path
