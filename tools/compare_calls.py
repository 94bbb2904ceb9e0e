"""Write how calls are read beside sglang's detectors and TRL's response templates, as Markdown.

    python tools/compare_calls.py [texts of each format] > comparison.md

The detectors are left out unless `TOOLGYM_SGLANG_PYTHON` names an interpreter that has them (no
torch is needed):

    python3 -m venv DIR && DIR/bin/pip install --no-deps sglang==0.5.23
    DIR/bin/pip install pydantic openai msgspec orjson partial-json-parser regex

One number of texts gives one table. The first twenty texts that no rule excuses are told on the
error output, with the rules that no text needed, and there the status is 1.
"""

import os
import sys
from collections import Counter

from benchmarks.call_readers import detectors, responses
from benchmarks.call_readers.comparison import shown, table
from benchmarks.call_readers.rules import OPEN, RULES
from benchmarks.call_readers.shapes import DETECTORS, SHAPES


def main() -> None:
    """Print the table, and the formats that nothing was compared with."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rows = list(responses.rows(count))
    python = os.environ.get(detectors.VARIABLE)
    if python:
        rows = [*detectors.rows(python, count), *rows]
    print(table(rows))
    alone = [shape.name for shape in SHAPES if not DETECTORS.get(shape.name)]
    if alone:
        print(f"\nWithout a detector: {', '.join(alone)}.")
    met = sum((row.reasons for row in rows), Counter[str]())
    unmet = [name for name in (*RULES, *OPEN) if not met[name]]
    print(f"needed nowhere: {', '.join(unmet)}", file=sys.stderr)
    faults = [case for row in rows for case in row.faults]
    if faults:
        sys.exit(f"{len(faults)} faults\n" + "\n".join(map(shown, faults[:20])))


if __name__ == "__main__":
    main()
