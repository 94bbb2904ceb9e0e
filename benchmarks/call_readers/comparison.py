"""Texts of one format beside another reader, counted: the rows of a table.

    both        the same calls, in their order
    neither     no call
    ours only   they found none
    theirs only we found none
    different   anything else

Where they found a call that we did not, or another one, `rules` has to say why. `detectors` and
`responses` have the readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.call_readers.cases import Case, Reader
from benchmarks.call_readers.rules import FAULT, OPEN, RULES, reason
from benchmarks.call_readers.written import SPECS, Shape, Written
from toolgym.calls.formats import find_calls

KINDS = ("both", "neither", "ours only", "theirs only", "different")


@dataclass
class Row:
    """The texts of one format beside one reader.

    Attributes:
        shape: The format.
        source: The other reader.
        counts: How many texts are of each of `KINDS`.
        reasons: How many of them need each rule, each open difference, and how many are faults.
        faults: The cases that nothing excuses.
    """

    shape: str
    source: str
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    faults: list[Case] = field(default_factory=list)

    def add(self, case: Case) -> None:
        """Count a case, and what it needs."""
        self.counts[kind(case)] += 1
        why = reason(case)
        if why:
            self.reasons[why] += 1
        if why == FAULT:
            self.faults.append(case)


def kind(case: Case) -> str:
    """One of `KINDS`."""
    if not case.found or not case.theirs:
        return ("neither", "theirs only", "ours only")[bool(case.theirs) + 2 * bool(case.found)]
    return "different" if case.extra or len(case.found) > len(case.theirs) else "both"


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
    lines = [
        f"| format | beside | texts | {' | '.join(KINDS)} | excused | open | faults | why |",
        "|---" * (len(KINDS) + 7) + "|",
    ]
    for row in rows:
        names = [name for name in (*RULES, *OPEN) if row.reasons[name]]
        cells = [
            row.shape,
            row.source,
            row.counts.total(),
            *(row.counts[name] for name in KINDS),
            sum(row.reasons[name] for name in RULES),
            sum(row.reasons[name] for name in OPEN),
            row.reasons[FAULT],
            ", ".join(f"{name} {row.reasons[name]}" for name in names),
        ]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def shown(case: Case) -> str:
    """A case, to look at."""
    return "\n".join(
        [
            f"{case.shape.name} ({case.written.mistake or 'as written'}): {case.text!r}",
            f"  meant:  {case.written.meant}",
            f"  ours:   {[(call.name, call.arguments) for call in case.found]}",
            f"  errors: {case.refused}",
            f"  theirs: {case.theirs}",
        ]
    )
