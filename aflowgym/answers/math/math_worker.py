"""The process in which `math-verify` runs: a pair of answers a line in, a word a line out.

Each line is a JSON list of the gold and the answer; the words are `yes`, `no` and `unclear`. The
file is run by its path and imports nothing of this package. Its own time limits are switched off,
since they use signals; the parent kills the process instead.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import resource
import sys
from typing import Any


def compare(library: Any, gold: str, answer: str) -> str:
    """The library's verdict on two formulas."""
    try:
        expected, parsed = (
            library.parse(f"${text}$", parsing_timeout=None, raise_on_error=True)
            for text in (gold, answer)
        )
        if not expected or not parsed:
            return "unclear"
        same = library.verify(expected, parsed, timeout_seconds=None, raise_on_error=True)
    except Exception:  # noqa: BLE001 - this is the boundary: sympy raises whatever it likes
        return "unclear"
    return "yes" if same else "no"


#: Bytes of memory that one process may take: a power of powers asks for all there is.
_MEMORY = 4 << 30


def main() -> None:
    """Answer until the input ends."""
    with contextlib.suppress(OSError, ValueError):  # a lower limit stands already, or none can
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    # What the library prints by itself is no answer, and half a line of it would be waited for.
    output, sys.stdout = sys.stdout, sys.stderr
    library = importlib.import_module("math_verify")
    for line in sys.stdin:
        gold, answer = json.loads(line)
        output.write(compare(library, gold, answer) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
