"""The workflow language: `parse` converts text to a typed tree, or to diagnostics.

`parse` accepts a workflow, or a model completion that contains exactly one workflow. For any other
text, the result has no workflow, but at least one error, which suggests a corrected workflow. A
corrected workflow is never run in place of the original text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aflowgym.dsl.checking import DEFAULT_LIMITS, Limits, calls, check
from aflowgym.dsl.diagnostics import CODES, Diagnostic, has_error
from aflowgym.dsl.mending import mend
from aflowgym.dsl.nodes import Node
from aflowgym.dsl.parsing import GRAMMAR, Syntax, read
from aflowgym.dsl.unwrap import in_words, is_prose, unwrap
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.operator import Operators

__all__ = ["CODES", "GRAMMAR", "Diagnostic", "Limits", "Node", "Parsed", "calls", "check", "parse"]

#: Maximum number of characters of a text.
LONGEST_TEXT = 20_000
#: Maximum number of diagnostics of one text. The most severe ones are kept.
MOST_RECORDS = 40


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of `parse`.

    Args:
        workflow: The workflow to run; None if there are errors.
        diagnostics: Errors, warnings and notes, in that order, each sorted by position.
    """

    workflow: Node | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that prevent the workflow from running."""
        return tuple(record for record in self.diagnostics if record.severity == "error")


def parse(
    text: str,
    *,
    kind: str | None = None,
    operators: Operators = OPERATORS,
    limits: Limits = DEFAULT_LIMITS,
) -> Parsed:
    """Parse the workflow in a model's output and check its types. Never raises an exception.

    Args:
        text: A workflow, or a model completion with a workflow in a `<workflow>` tag, in a fenced
            block, or after `DSL:`.
        kind: The kind of task, `math`, `code` or `qa`. If it is None, only the rules that apply to
            all kinds are checked.
        operators: The operators that can be used in the workflow.
        limits: Size limits of a workflow.

    >>> str(parse("custom → Review ? Revise").workflow)
    'Custom -> Review ? Revise : done'
    >>> print(parse("Custom -> ScEnsemble").errors[0])
    error[E-NEEDS-LIST] at 10: ScEnsemble chooses among the branches of a list; put one before it. \
Expected [a, b].
    This works: [Custom, Custom, Custom] -> ScEnsemble
    """
    syntax = _read(text, operators)
    tree, records = syntax.tree, syntax.diagnostics
    if tree is not None and syntax.sound:
        records = [*records, *check(tree, operators, kind, limits)]
        if not records:
            return Parsed(tree)
    sound = tree is not None and not has_error(records)
    works = str(tree) if sound else mend(tree, operators, kind, limits)
    records.sort(key=lambda record: ("EWN".index(record.code[0]), record.span))
    shown = tuple(replace(record, suggestion=works) for record in records[:MOST_RECORDS])
    return Parsed(tree if sound else None, shown)


def _read(text: str, operators: Operators) -> Syntax:
    """Return the tree of the single workflow in a string, and the diagnostics from parsing it."""
    if len(text) > LONGEST_TEXT:
        message = f"The text has {len(text):,} characters; at most {LONGEST_TEXT:,} are read."
        return Syntax(None, [Diagnostic("E-NO-WORKFLOW", message, (0, len(text)))])
    syntax = read(text, operators)
    notes: list[Diagnostic] = []
    if not syntax.sound:
        inner, notes = unwrap(text, operators)
        syntax = read(inner, operators)
        if not syntax.sound:
            syntax = in_words(inner, operators) or syntax
    for at, record in enumerate(syntax.diagnostics):
        if record.code == "N-COMMENT" and not is_prose(record.found, operators):
            message = "This comment may be a part of the workflow."
            syntax.diagnostics[at] = replace(record, code="E-REST", message=message)
    return Syntax(syntax.tree, [*syntax.diagnostics, *notes])
