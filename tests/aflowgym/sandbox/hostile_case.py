"""What a hostile program is, and the words that several of them get.

A program defines `f`. The pattern tells what becomes of the call: the error that is reported or,
after `value `, what `f` returns. `SECRET`, `OUTSIDE`, `FOLDER`, `PORT` and `PARENT` stand for a
file that must not be read, one that must not be made, the folder of both, a port where somebody
listens, and the process that asks.
"""

from typing import NamedTuple


class Hostile(NamedTuple):
    name: str
    gets: str
    source: str


def body(text: str) -> str:
    """A program whose `f` has this body."""
    lines = "\n".join("    " + line for line in text.strip().splitlines())
    return f"import ctypes, os, sys\ndef f():\n{lines}\n"


REFUSED = "PermissionError: .*"
#: A machine may also have no such file.
HIDDEN = f"{REFUSED}|FileNotFoundError.*"
