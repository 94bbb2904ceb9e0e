"""Texts of one format beside another reader, counted: the rows of a table.

`rules` says what the kinds are that are counted, `detectors` and `responses` have the readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.toolgym.calls.oracles.cases import Case, Reader
from tests.toolgym.calls.oracles.rules import OPEN, RULES, kind
from tests.toolgym.calls.oracles.written import SPECS, Shape, Written
from toolgym.calls.formats import find_calls


@dataclass
class Row:
    """The texts of one format beside one reader.

    Attributes:
        shape: The format.
        source: The other reader.
        counts: How many texts are of each kind.
        faults: The cases that nothing excuses.
    """

    shape: str
    source: str
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Case] = field(default_factory=list)

    def add(self, case: Case) -> None:
        what = kind(case)
        self.counts[what] += 1
        if what == "faults":
            self.faults.append(case)


def compare(shape: Shape, source: str, reader: Reader, written: Sequence[Written]) -> Row:
    """Read all texts in both ways."""
    row = Row(shape.name, source)
    for each in written:
        row.add(read(shape, each, reader))
    return row


def read(shape: Shape, written: Written, reader: Reader) -> Case:
    """One text, read in both ways."""
    ours, theirs = find_calls(written.text, SPECS), reader(written.text)
    return Case(shape, written, ours, theirs, reader)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    head = ["format", "beside", "texts", "both", "neither", "ours", "excused", "open", "faults"]
    lines = [f"| {' | '.join([*head, 'why'])} |", "|---" * (len(head) + 1) + "|"]
    for row in rows:
        excused = {name: row.counts[name] for name in RULES if row.counts[name]}
        still_open = {name: row.counts[name] for name in OPEN if row.counts[name]}
        cells = [
            row.shape,
            row.source,
            row.counts.total(),
            *(row.counts[kind] for kind in ("both", "neither", "ours")),
            sum(excused.values()),
            sum(still_open.values()),
            row.counts["faults"],
            ", ".join(f"{name} {count}" for name, count in (excused | still_open).items()),
        ]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def shown(case: Case) -> str:
    """A case for a failing test, or to look at."""
    return "\n".join(
        [
            f"{case.shape.name} ({case.written.mistake or 'as written'}): {case.text!r}",
            f"  meant:  {case.written.meant}",
            f"  ours:   {[(call.name, call.arguments) for call in case.found]}",
            f"  errors: {case.refused}",
            f"  theirs: {case.theirs}",
        ]
    )
