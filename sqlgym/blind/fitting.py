"""Which column a mention is, whose it is, and whether another column fits as well.

The table that a column belongs to is read from the text: "of the boats" after it, "boat's" before
it, else the table named last before it. A column that another one of its table fits as well is
ambiguous, and that is a finding as much as a wrong one. What an adjective or an extreme is about
("the oldest") is matched here too, and which of several references between two tables is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlgym.blind.clauses import Clauses, Extreme
from sqlgym.blind.names import Mention, Names, Noun
from sqlgym.blind.phrases import REACH, Unit
from sqlgym.blind.statements import ColumnUse, Query, Value
from sqlgym.blind.values import Units
from sqlgym.blind.words import alike, singular
from sqlgym.database.schema import ForeignKey

NEAR = 0.04
"""Two fits nearer than this are equally good."""


@dataclass(frozen=True)
class Finding:
    """One disagreement: its kind, and what it is about.

    Kinds: missing_condition, wrong_value, wrong_comparison, other_column, ambiguous_column,
    missing_column, other_aggregation, missing_aggregation, missing_count, wrong_direction,
    missing_order, wrong_limit, missing_once, unsaid_once, missing_grouping, other_join,
    missing_table, other_table, missing_set, unexplained_condition, unexplained_words, unreadable.
    """

    kind: str
    about: str


class Data(Protocol):
    """What has to be looked up in the rows."""

    def has_times(self, table: str, column: str) -> bool:
        """Whether dates of this column have times of the day."""

    def same_rows(self, table: str, column: str, other: str, value: str) -> bool:
        """Whether a value stands in `other` in no rows, or in those where it stands in `column`."""


class Fitting:
    """A question beside a query: what its mentions are, and what was found so far."""

    def __init__(
        self,
        names: Names,
        query: Query,
        row: Units,
        clauses: Clauses,
        data: Data,
    ) -> None:
        self.names, self.query, self.row, self.clauses = names, query, row, clauses
        self.data = data
        self.findings: dict[Finding, None] = {}
        self.places = {id(unit): place for place, unit in enumerate(row.units)}
        self.taken = {id(c.column) for c in row.conditions} | {id(c.inner) for c in row.conditions}
        self.spoken_tables: list[str] | None = None
        self.left = list(row.conditions)
        self.tables = {s.table for block in query.blocks() for s in block.sources}
        self.spoken = False

    def _find(self, kind: str, about: str) -> None:
        self.findings[Finding(kind, about)] = None

    def _place(self, unit: Unit) -> int:
        return self.places[id(unit)]

    def _fit(
        self,
        unit: Unit,
        use: ColumnUse,
        owners: Sequence[str] | None = None,
        measured: bool = False,
    ) -> str:
        """Whether a mention is this column: "" if it is, and nothing fits as well."""
        if unit.mention is None:
            return "other_column"
        if owners is None:
            owners = self._owners(self._place(unit))
        table = use.source.table
        fits = unit.mention.of_kind("column")
        own = [score for score, noun in fits if (noun.table, noun.column) == (table, use.column)]
        if not own:
            return "other_column"
        for score, noun in fits:
            if measured and noun.keyed:
                continue
            if noun.table == table and noun.column != use.column:
                if score > own[0] + NEAR:
                    return "other_column"
                if score > own[0] - NEAR:
                    return "ambiguous_column"
        if owners and table not in owners:
            rivals = [s for s, n in fits if n.table in owners and n.table in self.tables]
            if rivals and max(rivals) > own[0] - 0.2:
                return "other_table"
        return ""

    def _owners(self, place: int) -> list[str]:
        """The tables that a column mentioned here may belong to, by the words around it."""
        step = place + 1
        units = self.row.units
        while (
            step < min(len(units), place + REACH)
            and (units[step].is_column() or units[step].text in (",", "and", "or", "the"))
            and not units[step - 1].used
        ):
            step += 1
        if self.row.word(step) in ("number", "count") and self.row.word(step + 1) == "of":
            step += 3
        if self.row.word(step) in ("of", "among", "in", "for"):
            step += 1
            while step < place + 2 * REACH and self.row.word(step) in (
                "the",
                "each",
                "every",
                "all",
                "its",
                "their",
                "that",
                "those",
                "a",
                "any",
                "this",
                "an",
            ):
                step += 1
            if step < len(units) and units[step].is_table():
                return self._tables_of(units[step])
        before = place - 1
        if self.row.word(before) == "s":
            before -= 2
        sentence = True
        for back in range(before, max(-1, before - 3 * REACH), -1):
            if units[back].text in (".", "?", "!"):
                sentence = False
                break
            if units[back].is_table():
                return self._tables_of(units[back])
        if not sentence:
            if self.spoken_tables is None:
                tables = {t for u in units if u.is_table() for t in self._tables_of(u)}
                self.spoken_tables = sorted(tables)
            return self.spoken_tables
        return self._following(place)

    def _following(self, place: int) -> list[str]:
        """The first table after a place, and those said to be its: "each kind with ... of its"."""
        found: list[str] = []
        for step in range(place + 1, min(len(self.row.units), place + 3 * REACH)):
            unit = self.row.units[step]
            if unit.text in (".", "?", "!"):
                break
            if unit.is_table() and (
                not found or self.row.word(step - 1) in ("its", "their", "whose")
            ):
                found += self._tables_of(unit)
        return found

    def _tables_of(self, unit: Unit) -> list[str]:
        if unit.mention is None:
            return []
        fits = unit.mention.of_kind("table", "role")
        best = fits[0][0]
        return [noun.table for score, noun in fits if score > best - 0.3]

    def _mentions_table(self, unit: Unit, table: str) -> bool:
        return unit.is_table() and table in self._tables_of(unit)

    def _linked_by(self, table: str) -> list[str]:
        """The two tables that a table links, if nothing else does, and the text says "linked"."""
        if not any(unit.word == "linked" for unit in self.row.units):
            return []
        targets: dict[str, set[str]] = {}
        for key in self.names.references:
            targets.setdefault(key.table, set()).add(key.to_table)
        ends = targets.get(table, set())
        ways = [one for one, found in targets.items() if len(ends) == 2 and ends <= found | {one}]
        return sorted(ends) if ways == [table] else []

    def _passed_through(self, table: str) -> bool:
        """Whether the text speaks of both tables that a table links, and says that they are."""
        ends = self._linked_by(table)
        units = [unit for unit in self.row.units if unit.is_table()]
        return bool(ends) and all(any(self._mentions_table(u, e) for u in units) for e in ends)

    def _concept(self, concept: str, use: ColumnUse, at: int) -> str:
        """Whether an adjective's meaning is this column, and no other of the table's."""
        columns = [
            n for n in self.names.nouns if n.kind == "column" and n.table == use.source.table
        ]
        fitting: list[str] = []
        for tier in concept.split("|"):
            fitting = fitting or [noun.column for noun in columns if is_about(noun, tier)]
        if use.column not in fitting:
            return "other_column"
        return "" if len(set(fitting)) == 1 else "ambiguous_column"

    def _aggregate(self, value: Value) -> None:
        use = value.use
        if use is None:
            return
        wrong, found = "", False
        for extreme in self.clauses.extremes:
            fits = self._extreme_fits(extreme, use)
            if fits == "" and extreme.function == value.function and not extreme.over:
                self._take(extreme)
                found = True
            elif fits == "":
                wrong = "other_aggregation"
            elif extreme.function == value.function:
                wrong = wrong or fits
        for function, _, unit in self.clauses.most:
            if unit is not None and function == value.function and not self._fit(unit, use):
                found = unit.used = True
        if not found:
            self._find(wrong or "missing_aggregation", f"{value.function} of {use.column}")

    def _take(self, extreme: Extreme) -> None:
        if extreme.column is not None:
            extreme.column.used = True

    def _extreme_fits(self, extreme: Extreme, use: ColumnUse) -> str:
        if extreme.column is not None:
            return self._fit(extreme.column, use, None, True)
        if extreme.concept.strip("-"):
            return self._concept(extreme.concept, use, extreme.at)
        return ""

    def _extreme_order(self, value: Value, direction: str) -> None:
        """The first by an order: an extreme of a column or of an aggregation of it."""
        wanted = "max" if direction == "desc" else "min"
        use = value.use
        if use is None:
            return
        if value.function:
            self._aggregate(value)
        wrong = "missing_order"
        for extreme in self.clauses.extremes:
            if extreme.function not in ("min", "max") or extreme.over != bool(value.function):
                continue
            turned = self._turned(extreme, use)
            fits = (
                "" if extreme.over and extreme.column is None else self._extreme_fits(extreme, use)
            )
            function = (
                {"min": "max", "max": "min"}[extreme.function] if turned else extreme.function
            )
            if fits == "" and function == wanted:
                self._take(extreme)
                return
            wrong = (
                "wrong_direction" if fits == "" else (wrong if wrong == "wrong_direction" else fits)
            )
        for function, _, unit in self.clauses.most:
            if unit is not None and unit.is_column() and not self._fit(unit, use):
                if function == wanted:
                    unit.used = True
                    return
                wrong = "wrong_direction"
        self._find(wrong, use.column)

    def _turned(self, extreme: Extreme, use: ColumnUse) -> bool:
        """Whether the oldest has the smallest value: a date of birth, a year of founding."""
        if "age" not in extreme.concept.split():
            return False
        nouns = [
            n for n in self.names.nouns if (n.table, n.column) == (use.source.table, use.column)
        ]
        return bool(nouns) and not any(w.fit("age") >= 1 for n in nouns for w in n.words)

    def _check_reference(self, keys: Sequence[ForeignKey | None], about: str) -> None:
        key = keys[0] if keys else None
        if key is None:
            self._find("other_join", about)
            return
        siblings = [
            other
            for other in self.names.references
            if (other.table, other.to_table) == (key.table, key.to_table)
        ]
        if len(siblings) < 2:
            return
        roles = [n.reference for n in self.names.nouns if n.kind == "role"]
        if key not in roles:
            joined = {j.reference for block in self.query.blocks() for j in block.joins}
            others = [k for k in siblings if k in roles and k not in joined]
            if any(self._says_role(k) for k in others):
                self._find("other_join", about)
            return
        if not self._says_role(key):
            self._find("other_join", about)

    def _says_role(self, key: ForeignKey) -> bool:
        """Whether the text says which of several references is meant.

        Where the rows that refer are called as the reference is, only "the influence of" and
        "whose influence" say it.
        """
        for place, unit in enumerate(self.row.units):
            if unit.mention is None or not self._role_said(unit.mention, key):
                continue
            shared = any(s >= 1 and n.table == key.table for s, n in unit.mention.of_kind("table"))
            single = singular(unit.text.lower()) == unit.text.lower()
            alone = single and self.row.word(place + 1) == "of"
            alone = alone or self.row.word(place - 1) == "whose"
            if not shared or alone:
                return True
        return False

    @staticmethod
    def _role_said(mention: Mention, key: ForeignKey) -> bool:
        roles = mention.of_kind("role")
        return bool(roles) and any(n.reference == key and s > roles[0][0] - NEAR for s, n in roles)


def is_about(noun: Noun, concept: str) -> bool:
    """Whether a column's name says one of the words of a concept."""
    return any(
        alike(way, idea) in (0.6, 1.0)
        for word in noun.words
        for way in word.ways
        for idea in concept.split()
        if word.missing
    )
