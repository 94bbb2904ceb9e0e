"""The trace of a run: its steps, and how they are printed.

A trace is a tree with the structure of the workflow. The leaves of this tree are operators, and the
inner nodes are lists, loops and conditions. The nodes are in the order of the workflow's text,
regardless of the timing of branches. Therefore two runs with the same random draws have equal
traces. A failure is a record with a code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: All codes of failures and warnings of a run, with their meanings.
RUN_CODES = {
    "E-CALLS": "The run or branch has no model calls left.",
    "E-TOKENS": "The run or branch has no tokens left.",
    "E-STATE": "The state lacks an input of the operator; `parse` normally detects this error.",
    "E-REPLY-EMPTY": "The reply of the model is empty.",
    "E-REPLY-CUT": "The reply of the model was cut off.",
    "E-REPLY": "The reply of the model lacks the required verdict or candidate letter.",
    "E-PROGRAM": "No program from the model defines the required function and runs without errors.",
    "E-ALL-BRANCHES": "All branches of a list failed.",
    "E-OPERATOR": "The function that implements the operator called `fail`.",
    "W-BRANCH-FAIL": "A branch of a list failed and was removed.",
    "W-NO-TESTS": "The task has no public tests, so `Test` left the program unchanged.",
}


class Usage(NamedTuple):
    """The number of model calls, prompt tokens and completion tokens of a step."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.tokens_in + self.tokens_out

    def plus(self, other: Usage) -> Usage:
        """Return the sum of two `Usage` objects."""
        return Usage(self.calls + other.calls, self[1] + other[1], self[2] + other[2])


NOTHING = Usage()


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a step failed or a branch was dropped: a code and a sentence."""

    code: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        severity = "error" if self.code[0] == "E" else "warning"
        return f"{severity}[{self.code}] at step {self.path or '0'}: {self.message}"


@dataclass(slots=True)
class Step:
    """One step in the trace of a run.

    Attributes:
        label: The operator as written in the workflow, or the construct: `list`, `branch 2`, `round
            1`.
        path: The position in the workflow; the root is a sequence. All rounds of a loop have the
            same path.
        inputs: Slots that the step read; empty for a construct such as a list.
        outputs: Slots that the step filled; empty for a construct, or if the step failed.
        usage: The calls and tokens of the step, excluding its children.
        failure: The failure or warning; None if there is neither.
        children: The steps inside a construct, in the order of the workflow's text.
    """

    label: str
    path: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = NOTHING
    failure: Failure | None = None
    children: list[Step] = field(default_factory=list)

    def add(self, label: str, path: str) -> Step:
        """Add a new step after the existing children."""
        self.children.append(Step(label, path))
        return self.children[-1]

    def walk(self) -> Iterator[Step]:
        """Yield this step and all its descendants, in the order of the workflow's text."""
        left = [self]
        while left:
            step = left.pop()
            yield step
            left += reversed(step.children)

    def total(self) -> Usage:
        """Return the usage of the step and of its descendants."""
        used = self.usage
        for step in self.children:
            used = used.plus(step.total())
        return used

    def __str__(self) -> str:
        return "\n".join(_lines(self, "", ""))


def _lines(step: Step, first: str, rest: str) -> Iterator[str]:
    yield first + _line(step)
    for place, child in enumerate(step.children):
        last = place == len(step.children) - 1
        yield from _lines(
            child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  ")
        )


def _line(step: Step) -> str:
    parts = [step.label]
    parts += [f"{slot}={_short(value)}" for slot, value in step.outputs.items()]
    taken = step.total()
    if taken.calls:
        parts.append(f"({taken.calls} call{'s' * (taken.calls > 1)}, {taken.tokens} tokens)")
    if step.failure is not None:
        parts.append(str(step.failure))
    return "  ".join(parts)


def _short(value: object, most: int = 48) -> str:
    """Return the end of a string, which contains its answer."""
    text = repr(value)
    return text if len(text) <= most else f"{text[0]}…{text[2 - most :]}"
