"""One row of a table, spoken of by its label.

"the singer Joe Sharp" where the label is a name, "the order with the ID 12" where it is a key. A
label that another row has but for its case is not used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlgym.synthesis import roles, values
from sqlgym.synthesis.drafting import Draft, Unfit
from sqlgym.synthesis.world import Entity, Field, Role, literal


@dataclass(frozen=True)
class Named:
    """A row by its label.

    Attributes:
        fields: The columns of the label.
        cells: Their values.
        said: As a noun phrase.
        clause: Behind a noun for it: "is Balmoor", "has the ID 2".
    """

    fields: tuple[Field, ...]
    cells: tuple[Any, ...]
    said: str
    clause: str

    def where(self, alias: str = "") -> tuple[str, ...]:
        """The conditions that pick the row."""
        pairs = zip(self.fields, self.cells, strict=True)
        return tuple(f"{field.sql(alias)} = {literal(cell)}" for field, cell in pairs)


def row_of(draft: Draft, entity: Entity, besides: tuple[Any, ...] = ()) -> Named:
    """Some row of a table that has a label; none whose label is `besides`."""
    label = entity.label
    if label is None:
        raise Unfit
    cells = draft.pick(row for row in label.rows if row != besides)
    typable = all(roles.is_typable(cell) and cell is not None for cell in cells)
    draft.unless(not typable or _has_twin(label.rows, cells))
    said, clause = _said(draft, entity, label.fields, cells, label.is_name)
    return Named(label.fields, cells, said, clause)


def _said(
    draft: Draft, entity: Entity, fields: tuple[Field, ...], cells: tuple[Any, ...], is_name: bool
) -> tuple[str, str]:
    noun = entity.noun.one
    if len(fields) == 2:
        full = values.quoted_text(f"{cells[0]} {cells[1]}")
        return draft.say(f"the {noun} {full}", f"the {noun} named {full}"), f"is {full}"
    field, cell = fields[0], cells[0]
    shown = values.quoted_text(cell) if isinstance(cell, str) else f"{cell:.10g}"
    if not field.noun.is_readable:
        there = f'the value {shown} in column "{field.name}"'
        return f"the {noun} with {there}", f"has {there}"
    if not is_name:
        if field.role is Role.KEY or field.role is Role.CODE or field.role is Role.REFERENCE:
            clause = f"is {shown}" if isinstance(cell, str) else f"has the {field.noun.one} {shown}"
            return f"the {noun} with the {field.noun.one} {shown}", clause
        return f"the {noun} whose {field.noun.one} is {shown}", f"has the {field.noun.one} {shown}"
    said = draft.say(f"the {noun} {shown}", f"the {noun} {shown}", f"the {noun} named {shown}")
    return said, f"is {shown}"


def _has_twin(rows: tuple[tuple[Any, ...], ...], cells: tuple[Any, ...]) -> bool:
    """Whether another row has the same label but for its case."""
    folded = [str(cell).casefold().strip() for cell in cells]
    return sum([str(c).casefold().strip() for c in row] == folded for row in rows) > 1
