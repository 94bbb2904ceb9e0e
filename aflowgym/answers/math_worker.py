"""The process in which `math-verify` runs: a pair of answers a line in, a word a line out.

Each line is a JSON list of the gold and the answer; the words are `yes`, `no` and `unclear`. The
file is run by its path and imports nothing of this package. Its own time limits are switched off,
since they use signals; the parent kills the process instead.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def compare(library: Any, gold: str, answer: str) -> str:
    """What the library says of two formulas."""
    try:
        expected, given = (
            library.parse(f"${text}$", parsing_timeout=None, raise_on_error=True)
            for text in (gold, answer)
        )
        if not expected or not given:
            return "unclear"
        told = library.verify(expected, given, timeout_seconds=None, raise_on_error=True)
    except Exception:  # noqa: BLE001 - this is the boundary: sympy raises whatever it likes
        return "unclear"
    return "yes" if told else "no"


def main() -> None:
    """Answer until the input ends."""
    library = importlib.import_module("math_verify")
    for line in sys.stdin:
        gold, answer = json.loads(line)
        sys.stdout.write(compare(library, gold, answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
