"""Records of what is wrong or remarkable in the text of a workflow.

A record has a stable code, a severity, the place, what was found and expected there, and a whole
workflow that would be accepted. An error (`E-`) means that nothing runs. A warning (`W-`) means
that the workflow runs, and that its text was read in one way where the author should know which. A
note (`N-`) tells of text around the workflow that was set aside to find it. Nothing is changed
without one of the three.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]

#: Every code, and what it means.
CODES = {
    "E-NO-WORKFLOW": "The text holds no workflow.",
    "E-EMPTY": "A workflow, list or group without an operator.",
    "E-EXPECTED": "Something stands where the grammar has no place for it.",
    "E-CHAR": "A character that the language does not use.",
    "E-OP-UNKNOWN": "Unknown operator.",
    "E-TWO-WORKFLOWS": "More than one workflow, and no sign which is meant.",
    "E-REST": "What stands beside the workflow looks like more of it.",
    "E-DONE-PLACE": "`done` is a branch of a condition, or stands at the very end.",
    "E-COND-NESTED": "A condition inside another needs parentheses.",
    "E-COND-TYPE": "What stands before `?` gives no verdict.",
    "E-NEEDS-SOLUTION": "The operator works on a solution, and there is none yet.",
    "E-NEEDS-CODE": "The operator works on a program, and there is none.",
    "E-NEEDS-LIST": "The operator chooses among the branches of a list, and there is no list.",
    "E-NEEDS-FEEDBACK": "The operator works on feedback, and there is none.",
    "E-NEEDS-VERDICT": "The operator works on a verdict, and there is none.",
    "E-KIND": "The operator does not run on this kind of task.",
    "E-LIST": "A list meets an operator that takes one solution.",
    "E-LIST-END": "The workflow ends in a list, not in one solution.",
    "E-BUDGET": "The workflow can call the model more often than is allowed.",
    "E-SIZE": "Too many operators, or too deeply nested.",
    "W-COND-ELSE": "A condition without `:`; nothing is done when the check passes.",
    "W-COND-POLARITY": "`done` stands first; the other branch repairs, so it runs on failure.",
    "W-COND-EMPTY": "Both branches are `done`; the check changes nothing.",
    "W-LOOP-NOEXIT": "No check inside the loop, so it always runs to the end.",
    "W-LOOP-RANGE": "The number of repetitions was moved into the allowed range.",
    "W-LIST-ONE": "An ensemble over a list of one has nothing to choose.",
    "W-NO-FEEDBACK": "The operator revises by feedback, and there is none here.",
    "W-DONE-END": "`-> done` at the end does nothing.",
    "W-ARROW-EXTRA": "An arrow that leads from or to nothing.",
    "W-ARROW-SPELLING": "An arrow that is not written `->`.",
    "W-TIMES-SPELLING": "A repetition that is not written `* 3`.",
    "W-SIGN-SPELLING": "Another sign that is not written as the grammar has it.",
    "W-DONE-SPELLING": "A word for `done` that is not written `done`.",
    "W-COMMA": "A comma after the last branch of a list.",
    "W-OP-NAME": "An alias of an operator, or its name in another spelling.",
    "W-CLOSE": "A bracket at the end is missing.",
    "N-THINK": "What stands between `<think>` tags was not read.",
    "N-TAG": "The workflow was taken from the last `<workflow>` tag.",
    "N-FENCE": "The workflow was taken from the last fenced block.",
    "N-LABEL": "The workflow was taken from behind the last label.",
    "N-JSON": "The workflow was taken out of an object of JSON.",
    "N-SPAN": "The workflow was taken out of the text around it.",
    "N-MARKUP": "Quotes, bullets, numbers or trailing punctuation were set aside.",
    "N-COMMENT": "A comment was set aside.",
}
_SEVERITIES: dict[str, Severity] = {"E": "error", "W": "warning", "N": "note"}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing to say about a text.

    Args:
        code: A key of `CODES`.
        message: What is the matter here, one sentence.
        span: Start and end in the text as it was given, in characters.
        found: The text that stands there; empty at the end.
        expected: What could stand there instead.
        suggestion: A whole workflow that is accepted, in canonical form; None where there is none.
    """

    code: str
    message: str
    span: tuple[int, int]
    found: str = ""
    expected: tuple[str, ...] = ()
    suggestion: str | None = None

    @property
    def severity(self) -> Severity:
        """`error`, `warning` or `note`."""
        return _SEVERITIES[self.code[0]]

    def __str__(self) -> str:
        text = f"{self.severity}[{self.code}] at {self.span[0]}: {self.message}"
        if self.expected:
            text += f" Expected {', '.join(self.expected)}."
        if self.suggestion is not None:
            text += f"\nThis works: {self.suggestion}"
        return text


def has_error(records: Iterable[Diagnostic]) -> bool:
    """Whether an error is among some records, so that nothing runs."""
    return any(record.code[0] == "E" for record in records)
