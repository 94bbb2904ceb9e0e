"""Write how calls are read beside sglang's detectors and TRL's response templates, as Markdown.

    python tools/compare_calls.py [texts of each format] > comparison.md

The detectors are left out unless `TOOLGYM_SGLANG_PYTHON` names an interpreter that has them
(tests/toolgym/calls/test_oracles.py says how to make one). One number of texts gives one table.
"""

import os
import sys

from tests.oracles import detectors, responses
from tests.oracles.comparison import table
from tests.oracles.shapes import DETECTORS, SHAPES


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


if __name__ == "__main__":
    main()
