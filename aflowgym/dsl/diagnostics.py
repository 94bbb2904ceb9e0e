"""Diagnostics: errors, warnings and notes about the text of a workflow.

A workflow with an error (`E-`) is not run. A workflow with a warning (`W-`) is run, and the warning
reports how its text was interpreted. A note (`N-`) reports text around the workflow that was
ignored. Every change to the text, and every ignored part, is reported in a diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

#: The codes and their meanings.
CODES = {
    "E-NO-WORKFLOW": "The text contains no workflow.",
    "E-EMPTY": "A workflow, list or group is empty.",
    "E-EXPECTED": "The text contains something unexpected, or something is missing.",
    "E-CHAR": "The text contains a character that is not part of the language.",
    "E-OP-UNKNOWN": "The operator is unknown.",
    "E-TWO-WORKFLOWS": "The text contains several workflows.",
    "E-REST": "It is unclear whether additional text is part of the workflow.",
    "E-DONE-PLACE": "`done` is only allowed as a branch of a condition or at the end.",
    "E-COND-NESTED": "A condition inside another condition requires parentheses.",
    "E-COND-TYPE": "The step before `?` does not return a verdict.",
    "E-NEEDS-SOLUTION": "The operator needs a solution, but no solution exists yet.",
    "E-NEEDS-CODE": "The operator needs a program, but no program exists yet.",
    "E-NEEDS-LIST": "The operator needs a list, but no list precedes it.",
    "E-NEEDS-FEEDBACK": "The operator needs feedback, but no feedback exists yet.",
    "E-NEEDS-VERDICT": "The operator needs a verdict, but no verdict exists yet.",
    "E-KIND": "The operator does not support this kind of task.",
    "E-LIST": "An operator that accepts only a single solution follows a list.",
    "E-LIST-END": "The workflow ends with a list rather than a single solution.",
    "E-BUDGET": "The workflow could make more model calls than allowed.",
    "E-SIZE": "The workflow has too many operators, or they are nested too deeply.",
    "W-COND-ELSE": "The condition has no `:`, so nothing happens if the check passes.",
    "W-COND-POLARITY": "The first branch is `done`, so the second branch runs if the check fails.",
    "W-COND-EMPTY": "Both branches are `done`, so the check has no effect.",
    "W-LOOP-NOEXIT": "The loop contains no check, so it always runs all iterations.",
    "W-LOOP-RANGE": "The number of repetitions was clipped to the allowed range.",
    "W-LIST-ONE": "An ensemble has only one candidate to choose from.",
    "W-DONE-END": "`-> done` at the end does nothing.",
    "W-ARROW-EXTRA": "There is an extra arrow.",
    "W-ARROW-SPELLING": "An arrow that is not written `->`.",
    "W-TIMES-SPELLING": "A repetition that is not written `* 3`.",
    "W-SIGN-SPELLING": "Another symbol that is not written as in the grammar.",
    "W-DONE-SPELLING": "A different spelling of `done`.",
    "W-COMMA": "A comma after the last branch of a list.",
    "W-OP-NAME": "An alias of an operator, or a different spelling of its name.",
    "N-THINK": "The text before `</think>` was ignored.",
    "N-TAG": "The workflow was taken from the `<workflow>` tag.",
    "N-FENCE": "The workflow was taken from the fenced block.",
    "N-LABEL": "The workflow after the label was used.",
    "N-MARKUP": "Quotes, a bullet, a number or a full stop around the workflow were ignored.",
    "N-COMMENT": "A comment was ignored.",
}
_SEVERITIES: dict[str, Severity] = {"E": "error", "W": "warning", "N": "note"}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error, warning or note.

    Args:
        code: A key of `CODES`.
        message: One sentence that describes this case.
        span: Start and end in the original text, as character indices.
        found: The text at this position; empty if the text ends here.
        expected: Strings that the grammar allows at this position.
        suggestion: A complete valid workflow in canonical form; None if there is none.
    """

    code: str
    message: str
    span: tuple[int, int]
    found: str = ""
    expected: tuple[str, ...] = ()
    suggestion: str | None = None

    @property
    def severity(self) -> Severity:
        """The severity: `error`, `warning` or `note`."""
        return _SEVERITIES[self.code[0]]

    def __str__(self) -> str:
        text = f"{self.severity}[{self.code}] at {self.span[0]}: {self.message}"
        if self.expected:
            text += f" Expected {', '.join(self.expected)}."
        if self.suggestion is not None:
            text += f"\nThis works: {self.suggestion}"
        return text


def has_error(records: Iterable[Diagnostic]) -> bool:
    """Return whether any of the diagnostics is an error, so that the workflow cannot be run."""
    return any(record.code[0] == "E" for record in records)
