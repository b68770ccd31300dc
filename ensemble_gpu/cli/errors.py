"""What the command line says where the input is bad: one line, and exit code 2."""

from __future__ import annotations

import argparse
from typing import NoReturn

BAD_INPUT = 2


class BadInput(Exception):
    """Something that the user can put right; the text is the line that is shown."""


class Parser(argparse.ArgumentParser):
    """One that names an error in one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def one_line(error: BaseException) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f"{error.filename}: "
        return f"{name}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def listed(names: list[str], most: int = 8) -> str:
    """Names in quotes, the first ones of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
