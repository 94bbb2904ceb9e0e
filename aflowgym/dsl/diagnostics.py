"""Diagnostics: errors, warnings and notes about the text of a workflow.

After an error (`E-`) nothing runs. After a warning (`W-`) the workflow runs, and the warning says
how its text was read. A note (`N-`) reports text around the workflow that was ignored. No text is
changed or ignored without a diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

#: The codes and their meanings.
CODES = {
    "E-NO-WORKFLOW": "The text has no workflow.",
    "E-EMPTY": "A workflow, list or group is empty.",
    "E-EXPECTED": "A part is missing, or not expected here.",
    "E-CHAR": "The language does not use this character.",
    "E-OP-UNKNOWN": "Unknown operator.",
    "E-TWO-WORKFLOWS": "There is more than one workflow.",
    "E-REST": "Other text around the workflow, or in a comment, may be a part of it.",
    "E-DONE-PLACE": "`done` is neither a branch of a condition nor at the end.",
    "E-COND-NESTED": "A condition inside another one needs parentheses.",
    "E-COND-TYPE": "The step before `?` gives no verdict.",
    "E-NEEDS-SOLUTION": "The operator needs a solution, and there is none yet.",
    "E-NEEDS-CODE": "The operator needs a program, and there is none.",
    "E-NEEDS-LIST": "The operator needs a list, and there is none.",
    "E-NEEDS-FEEDBACK": "The operator needs feedback, and there is none.",
    "E-NEEDS-VERDICT": "The operator needs a verdict, and there is none.",
    "E-KIND": "The operator does not run on this kind of task.",
    "E-LIST": "A list comes before an operator that takes one solution.",
    "E-LIST-END": "The workflow ends in a list, not in one solution.",
    "E-BUDGET": "The workflow can make more calls of the model than allowed.",
    "E-SIZE": "There are too many operators, or they are nested too deeply.",
    "W-COND-ELSE": "The condition has no `:`, so nothing happens if the check passes.",
    "W-COND-POLARITY": "`done` comes first; the other branch repairs, so it runs on failure.",
    "W-COND-EMPTY": "Both branches are `done`; the check changes nothing.",
    "W-LOOP-NOEXIT": "The loop has no check, so it always runs all rounds.",
    "W-LOOP-RANGE": "The number of repetitions was moved into the allowed range.",
    "W-LIST-ONE": "An ensemble over a list of one has nothing to choose.",
    "W-DONE-END": "`-> done` at the end does nothing.",
    "W-ARROW-EXTRA": "There is an extra arrow.",
    "W-ARROW-SPELLING": "An arrow that is not written `->`.",
    "W-TIMES-SPELLING": "A repetition that is not written `* 3`.",
    "W-SIGN-SPELLING": "Another sign that is not written as in the grammar.",
    "W-DONE-SPELLING": "A word for `done` that is not written `done`.",
    "W-COMMA": "A comma after the last branch of a list.",
    "W-OP-NAME": "An alias of an operator, or its name in another spelling.",
    "N-THINK": "The text before `</think>` was not read.",
    "N-TAG": "The workflow was taken from the `<workflow>` tag.",
    "N-FENCE": "The workflow was taken from the fenced block.",
    "N-LABEL": "The workflow was taken from after the label.",
    "N-MARKUP": "Quotes, a bullet, a number or a full stop around the workflow were ignored.",
    "N-COMMENT": "A comment was ignored.",
}
_SEVERITIES: dict[str, Severity] = {"E": "error", "W": "warning", "N": "note"}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error, warning or note.

    Args:
        code: A key of `CODES`.
        message: One sentence about this case.
        span: Start and end in the original text, in characters.
        found: The text at this place, empty at the end.
        expected: Texts that the grammar allows at this place.
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
    """Return whether one of some diagnostics is an error, so that nothing runs."""
    return any(record.code[0] == "E" for record in records)
