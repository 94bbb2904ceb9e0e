"""The language of workflows: text in, a typed tree or an explanation out.

`parse` is the one door. A text that is a workflow, or holds exactly one beyond doubt, gives that
workflow and tells in warnings and notes how it was read. Any other text gives no workflow and at
least one error, with a corrected workflow beside it; nothing is run in place of what was written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aflowgym.dsl.checking import DEFAULT_LIMITS, Limits, calls, check
from aflowgym.dsl.diagnostics import CODES, Diagnostic, has_error
from aflowgym.dsl.extraction import Held, Region, locate, remove_marks, workflow_in_json
from aflowgym.dsl.mending import mend
from aflowgym.dsl.nodes import Node, operators_of
from aflowgym.dsl.parsing import GRAMMAR, read
from aflowgym.dsl.prose import is_prose
from aflowgym.dsl.searching import check_comments, faulty_piece, only
from aflowgym.dsl.tokens import Syntax
from aflowgym.operators.aflow import OPERATORS
from aflowgym.operators.operator import Operators

__all__ = ["CODES", "GRAMMAR", "Diagnostic", "Limits", "Node", "Parsed", "calls", "check", "parse"]

#: Longer texts are not searched for a workflow.
LONGEST_TEXT = 20_000
#: Records of one text, the gravest first; what comes after is not told.
MOST_RECORDS = 40


@dataclass(frozen=True, slots=True)
class Parsed:
    """The reading of a text.

    Args:
        workflow: The workflow to run; None if there is any error.
        diagnostics: Errors, warnings and notes, in that order of severity, then of place.
    """

    workflow: Node | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The records that keep it from running."""
        return tuple(record for record in self.diagnostics if record.severity == "error")


def parse(
    text: str,
    *,
    kind: str | None = None,
    operators: Operators = OPERATORS,
    limits: Limits = DEFAULT_LIMITS,
) -> Parsed:
    """Read a workflow, wherever in the text it stands, and check its types.

    No text raises.

    Args:
        text: What a model or a person wrote.
        kind: The kind of task it is for, `math`, `code` or `qa`; None checks what holds for all.
        operators: The operators it can name.
        limits: How large it may be.

    >>> str(parse("custom → Review ? Revise").workflow)
    'Custom -> Review ? Revise : done'
    >>> print(parse("Custom -> ScEnsemble").errors[0])
    error[E-NEEDS-LIST] at 10: ScEnsemble chooses among the branches of a list; put one before it. \
Expected [a, b].
    This works: [Custom, Custom, Custom] -> ScEnsemble
    """
    if len(text) > LONGEST_TEXT:
        message = f"A text of {len(text):,} characters is not read; {LONGEST_TEXT:,} are allowed."
        syntax = Syntax(None, [Diagnostic("E-NO-WORKFLOW", message, (0, len(text)))])
        return _finish(syntax, kind, operators, limits)
    whole = read(text, operators)
    if whole.sound:
        return _finish(check_comments(text, whole, operators), kind, operators, limits)
    region = locate(text, operators)
    for wrapped, notes in ((text, ()), (region.text, region.notes)):
        inner = workflow_in_json(wrapped)
        if inner is not None:
            again = parse(inner.text, kind=kind, operators=operators, limits=limits)
            return _unwrap(wrapped, inner, again, notes, operators)
    return _finish(_search(region, operators), kind, operators, limits)


def _unwrap(
    text: str, inner: Held, parsed: Parsed, notes: tuple[Diagnostic, ...], operators: Operators
) -> Parsed:
    """What a workflow in JSON says, its places those in the text."""
    works = parsed.diagnostics[0].suggestion if parsed.diagnostics else str(parsed.workflow)
    places = inner.places
    records = [
        replace(taken_out, span=(places[taken_out.span[0]], places[taken_out.span[1]]))
        for taken_out in parsed.diagnostics
    ]
    whole = (places[0], places[-1])
    taken_out = Diagnostic("N-JSON", "Taken out of an object of JSON.", whole, text[slice(*whole)])
    tree = parsed.workflow
    records += [replace(note, suggestion=works) for note in (*notes, taken_out)]
    names = frozenset(each.name for each in operators_of(tree)) if tree else frozenset()
    if not all(is_prose(other, operators, names) for other in inner.others):
        message = "The object holds more than a workflow and words about it."
        records.append(Diagnostic("E-REST", message, (0, len(text)), suggestion=works))
    sound = not has_error(records)
    return Parsed(tree if sound else None, tuple(sorted(records, key=_gravest)[:MOST_RECORDS]))


def _gravest(record: Diagnostic) -> tuple[int, tuple[int, int]]:
    return "EWN".index(record.code[0]), record.span


def _with_notes(syntax: Syntax, region: Region) -> Syntax:
    """A reading with what was set aside for it; an error if that was of an instruction."""
    records = [*syntax.diagnostics, *region.notes]
    if syntax.tree is not None and syntax.sound and not region.keeps(syntax.tree):
        message = "An instruction holds marks that were set aside; write it behind its operator."
        records.append(Diagnostic("E-CHAR", message, (0, len(region.source))))
    return Syntax(syntax.tree, records)


def _search(region: Region, operators: Operators) -> Syntax:
    """The workflow in a text that is not one as a whole."""
    clean = remove_marks(region, operators)
    for attempt in (region, clean):
        syntax = read(attempt.text, operators)
        if syntax.sound:
            return _with_notes(check_comments(attempt.text, syntax, operators), attempt)
    single = only(clean.text, operators)
    return _with_notes(single or _hopeless(clean, syntax, operators), clean)


def _hopeless(region: Region, syntax: Syntax, operators: Operators) -> Syntax:
    """The errors of a faulty workflow, or that there is none at all."""
    if any(note.code in ("N-TAG", "N-FENCE", "N-LABEL") for note in region.notes):
        return syntax
    piece = faulty_piece(region.text, operators)
    if piece is None:
        message = "There is no workflow in this text."
        return Syntax(None, [Diagnostic("E-NO-WORKFLOW", message, (0, len(region.text)))])
    narrowed = read(piece, operators)
    # A piece that reads well alone went on in something that does not: the errors are there.
    return syntax if narrowed.sound else narrowed


def _finish(syntax: Syntax, kind: str | None, operators: Operators, limits: Limits) -> Parsed:
    """Check the types, and put a corrected workflow beside whatever was found."""
    records = syntax.diagnostics
    tree = syntax.tree
    if tree is not None and syntax.sound:
        records = [*records, *check(tree, operators, kind, limits)]
        if not records:
            return Parsed(tree)
    sound = tree is not None and not has_error(records)
    works = str(tree) if sound else mend(tree, operators, kind, limits)
    ordered = sorted(records, key=_gravest)
    shown = tuple(replace(record, suggestion=works) for record in ordered[:MOST_RECORDS])
    return Parsed(tree if sound else None, shown)
