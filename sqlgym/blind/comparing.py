"""What the text says against what the SQL does.

Each fact of the SQL needs words of the question that say it, and no other column of the tables asked
about may fit those words as well; each word that means something needs a fact. Conditions are
compared by column, comparison and value: dates as intervals, numbers by their size, texts exactly.
Which table a column belongs to is read from the text: "of the boats" after it, "boat's" before it,
else the table named last before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlgym.blind.clauses import HOW, STOP_WORDS, Clauses, Extreme
from sqlgym.blind.dates import Interval, interval_of, interval_said
from sqlgym.blind.names import Mention, Names, Noun, parts_of
from sqlgym.blind.statements import Block, ColumnUse, Query, SqlCondition, Value, name_columns
from sqlgym.blind.values import REACH, Condition, Unit, Units
from sqlgym.blind.words import alike

_PLACES = (
    "city town country location region state place hometown continent island district nation zone"
    " county province area origin"
)
NEAR = 0.04
"""Two fits nearer than this are equally good."""


@dataclass(frozen=True)
class Finding:
    """One disagreement: its kind, and what it is about.

    Kinds: missing_condition, wrong_value, wrong_comparison, other_column, ambiguous_column,
    missing_column, other_aggregation, missing_aggregation, missing_count, wrong_direction,
    missing_order, wrong_limit, missing_once, unsaid_once, missing_grouping, other_join, missing_table,
    other_table, missing_set, unexplained_condition, unexplained_words, unreadable.
    """

    kind: str
    about: str


class Data(Protocol):
    """What has to be looked up in the rows."""

    def has_times(self, table: str, column: str) -> bool:
        """Whether dates of this column have times of the day."""

    def same_rows(self, table: str, column: str, other: str, value: str) -> bool:
        """Whether a value stands in `other` in no rows, or in those where it stands in `column`."""


class Comparison:
    """One question against one query; `findings` fill up as its parts are compared."""

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

    def compare(self) -> list[Finding]:
        """All disagreements."""
        end = len(self.row.units) + 1
        first, second = self.query.first, self.query.second
        middle = end
        if second is not None:
            middle = self.clauses.splits.get(self.query.operation, -1)
            if middle < 0:
                self._find("missing_set", self.query.operation)
                middle = end
        elif self.clauses.splits and not self._split_is_plain():
            self._find("unexplained_words", "a second list")
        self._block(first, 0, middle)
        if second is not None:
            self._conditions(second, middle if middle < end else 0, end)
            if self._shape(first) != self._shape(second):
                self._find("other_column", "the two lists")
        self._once()
        self._joins()
        self._tables()
        self._rest()
        return list(self.findings)

    def _find(self, kind: str, about: str) -> None:
        self.findings[Finding(kind, about)] = None

    def _split_is_plain(self) -> bool:
        """Whether what looked like a second list is none: "leave out pets without any"."""
        return set(self.clauses.splits) <= set()

    @staticmethod
    def _shape(block: Block) -> list[tuple[str, str, str]]:
        return [
            (v.function, v.use.source.table if v.use else "", v.use.column if v.use else "")
            for v in block.selected
        ]

    # What a block selects, groups and orders by.

    def _block(self, block: Block, low: int, high: int) -> None:
        self._conditions(block, low, high)
        for value in block.selected:
            self._selected(value, block)
        self._groups(block)
        for condition in block.having:
            self._having(condition, block)
        self._order(block)

    def _selected(self, value: Value, block: Block) -> None:
        if value.function == "count":
            self._count(value, block)
        elif value.function:
            self._aggregate(value, block)
        elif value.use is not None and value.use.part:
            self._part(value.use)
            self._plain(value.use, block, "missing_column")
        elif value.use is not None:
            self._plain(value.use, block, "missing_column")

    def _part(self, use: ColumnUse) -> None:
        """The year or the month of a date, asked for by that word."""
        words = ("year", "years") if use.part == "%Y" else ("month", "months")
        said = [unit for unit in self.row.units if unit.text.lower().split()[-1:][0] in words]
        for unit in said:
            unit.used = True
        if not said:
            self._find("missing_column", f"{words[0]} of {use.column}")

    def _count(self, value: Value, block: Block) -> None:
        rows = [u for u in self.row.units if u.is_table() and u.text.lower().startswith("number")]
        for unit in rows:
            unit.used = True
        if not self.clauses.counted and not rows:
            self._find("missing_count", "number of rows")
        if value.distinct and value.use is not None:
            if not self.clauses.once:
                self._find("missing_once", value.use.column)
            led = self._leads_to(value.use)
            if led:
                self.tables.add(led)
            else:
                self._plain(value.use, block, "missing_column")

    def _leads_to(self, use: ColumnUse) -> str:
        """The table whose rows the distinct values of a column are, if the text names it."""
        for key in self.names.references:
            if (key.table, key.column) == (use.source.table, use.column):
                for place in self.clauses.once:
                    following = (u for u in self.row.units[place:] if u.mention is not None)
                    if self._mentions_table(next(following, self.row.units[place]), key.to_table):
                        return key.to_table
        return ""

    def _aggregate(self, value: Value, block: Block) -> None:
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

    def _concept(self, concept: str, use: ColumnUse, at: int) -> str:
        """Whether an adjective's meaning is this column, and no other of the table's."""
        fitting: list[str] = []
        for tier in concept.split("|"):
            fitting = fitting or [
                noun.column
                for noun in self.names.nouns
                if noun.kind == "column" and noun.table == use.source.table and _about(noun, tier)
            ]
        if use.column not in fitting:
            return "other_column"
        return "" if len(set(fitting)) == 1 else "ambiguous_column"

    def _plain(self, use: ColumnUse, block: Block, kind: str) -> None:
        """A column that is asked for or grouped by needs a mention that is not a condition's."""
        worst = kind
        found = False
        for place, unit in enumerate(self.row.units):
            if not unit.is_column() or self._in_condition(unit):
                continue
            owners = (
                [use.source.table] if self.row.word(place - 1) == "each" else self._owners(place)
            )
            fit = self._fit(unit, use, owners)
            if fit == "":
                unit.used = found = True
            elif fit == "ambiguous_column":
                worst = fit
        found = found or self._asked_how(use)
        if not found and any("number" in part for part in parts_of(use.column)):
            found = self._number_said()
        if not found and not self._goes_without_saying(use, block):
            self._find(worst, f"{use.source.table}.{use.column}")

    def _asked_how(self, use: ColumnUse) -> bool:
        """Whether "how long" or the like asks for this column."""
        for place, unit in enumerate(self.row.units):
            concept = HOW.get(unit.word, "")
            if (
                concept
                and self.row.word(place - 1) == "how"
                and not self._concept(concept, use, place)
            ):
                unit.used = True
                return True
        return False

    def _number_said(self) -> bool:
        """Whether a word "numbers" is left that no count takes: "Give their numbers."."""
        if self.clauses.counted and not self._counts():
            self.clauses.counted = []
            return True
        return False

    def _goes_without_saying(self, use: ColumnUse, block: Block) -> bool:
        """Whether rows are asked for by their name alone: "Which teachers are over 40?"."""
        if use.part or not any(self._mentions_table(u, use.source.table) for u in self.row.units):
            return False
        if block.groups and not any(
            g.source == use.source and self._is_key(g) for g in block.groups
        ):
            return False
        names = name_columns(self.names.schema, use.source.table)[:1]
        whole = [
            v.use.column
            for v in block.selected
            if v.use and not v.function and v.use.source == use.source
        ]
        firsts = [c for c in whole if "first" in c.lower() or "fname" in c.lower()]
        lasts = [c for c in whole if "last" in c.lower() or "lname" in c.lower()]
        allowed = firsts + lasts if len(firsts) == len(lasts) == 1 else names
        return use.column in allowed and all(column in allowed for column in whole)

    def _in_condition(self, unit: Unit) -> bool:
        return id(unit) in self.taken

    def _groups(self, block: Block) -> None:
        counted = any(v.function for v in block.selected)
        if len({(v.function, v.use, v.distinct) for v in block.selected}) < len(block.selected):
            self._find("other_column", "selected twice")
        keyed = {g.source for g in block.groups if self._is_key(g)}
        for value in block.selected:
            loose = block.groups and value.use is not None and not value.function
            if loose and value.use not in block.groups and value.use.source not in keyed:
                self._find("missing_grouping", f"{value.use.column} is not grouped by")
        if block.groups:
            for use in block.groups:
                if any(v.use == use and not v.function for v in block.selected):
                    continue
                if not self._is_key(use):
                    self._plain(use, block, "missing_grouping")
        elif counted and any(not v.function for v in block.selected):
            self._find("missing_grouping", "columns beside an aggregation")
        if counted and not block.groups and self.clauses.each and self.clauses.parts:
            self._find("missing_grouping", "each year or month")

    def _is_key(self, use: ColumnUse) -> bool:
        table = self.names.schema.get(use.source.table)
        column = table.column(use.column) if table else None
        return column is not None and column.primary_key

    def _having(self, condition: SqlCondition, block: Block) -> None:
        value = condition.left
        if value.function == "count" and value.use is None:
            for said in self.row.counts:
                if said[0] == condition.sign and str(said[1]) == condition.values[0]:
                    self.row.counts.remove(said)
                    return
            self._find("wrong_value" if self.row.counts else "missing_condition", "number of rows")
            return
        self._condition(condition, block, 0, len(self.row.units) + 1)

    def _order(self, block: Block) -> None:
        if not block.order:
            if block.limit is not None:
                self._find("missing_order", "limit without order")
            return
        if len(block.order) != 1:
            self._find("unreadable", "order by several")
            return
        value, direction = block.order[0]
        self._limit(block)
        if value.function == "count":
            self._most(value, direction)
        elif value.function:
            self._extreme_order(value, direction)
        elif block.limit is not None:
            self._extreme_order(value, direction)
            if block.limit > 1 and self.clauses.orders:
                self._listed(value, direction)
        else:
            self._listed(value, direction)

    def _limit(self, block: Block) -> None:
        said = [number for number, _ in self.row.limits]
        if block.limit is None or block.limit == 1:
            if [n for n in said if n != 1]:
                self._find("wrong_limit", str(said[0]))
        elif block.limit not in said:
            self._find("wrong_limit", str(block.limit))
        self.spoken = True

    def _most(self, value: Value, direction: str) -> None:
        wanted = "max" if direction == "desc" else "min"
        if value.use is not None and value.distinct and not self.clauses.once:
            self._find("missing_once", value.use.column)
        said = [function for function, _, _ in self.clauses.most]
        if wanted not in said:
            self._find("wrong_direction" if said else "missing_order", "number of rows")

    def _extreme_order(self, value: Value, direction: str) -> None:
        """The first by an order: an extreme of a column or of an aggregation of it."""
        wanted = "max" if direction == "desc" else "min"
        use = value.use
        if use is None:
            return
        if value.function:
            self._aggregate(value, self.query.first)
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

    def _listed(self, value: Value, direction: str) -> None:
        if value.use is None:
            return
        wrong = "missing_order"
        for said, kind, _, unit in self.clauses.orders:
            if unit is not None:
                fits = self._fit(unit, value.use)
            else:
                selected = [v.use for v in self.query.first.selected if v.use]
                first = bool(selected) and selected[0] == value.use
                fits = "" if first and (kind == "text" or len(selected) == 1) else "other_column"
            if fits == "" and said == direction:
                if unit is not None:
                    unit.used = True
                self.clauses.orders = []
                return
            wrong = "wrong_direction" if fits == "" else fits
        self._find(wrong, value.use.column)

    # Conditions.

    def _conditions(self, block: Block, low: int, high: int) -> None:
        alternatives = [c for c in block.conditions if c.alternative]
        if alternatives and not any(u.word == "or" for u in self.row.units):
            self._find("wrong_comparison", "or")
        if len(block.conditions) > 1 and not alternatives and self._says_or(low, high):
            self._find("wrong_comparison", "and")
        for condition in block.conditions:
            if condition.inner is not None:
                self._nested(condition, block, low, high)
            else:
                self._condition(condition, block, low, high)

    def _says_or(self, low: int, high: int) -> bool:
        """Whether "or" stands before a whole condition: "or whose", "or with"."""
        words = self.row.units[low:high]
        return any(
            a.word == "or" and b.word in ("whose", "with", "that", "which", "have")
            for a, b in zip(words, words[1:], strict=False)
        )

    def _condition(self, condition: SqlCondition, block: Block, low: int, high: int) -> None:
        wrong = "missing_condition"
        for said in self.left:
            if not low <= said.at < high:
                continue
            column = self._condition_column(said, condition)
            same = self._same(said, condition)
            if column == "" and same == "":
                self.left.remove(said)
                return
            if column == "" and same in ("wrong_value", "wrong_comparison"):
                wrong = same
            elif same == "" and column and wrong == "missing_condition":
                wrong = column
        use = condition.left.use
        for said in list(self.row.counts):
            sign, number, at, unit = said
            agrees = sign == condition.sign and _equal([("number", str(number))], condition.values)
            if (
                use
                and agrees
                and low <= at < high
                and unit.is_column()
                and not self._fit(unit, use)
            ):
                self.row.counts.remove(said)
                unit.used = True
                return
        self._find(
            wrong, f"{use.column if use else '*'} {condition.sign} {' '.join(condition.values)}"
        )

    def _condition_column(self, said: Condition, condition: SqlCondition) -> str:
        use = condition.left.use
        if use is None:
            return "other_column"
        if (said.function or "") != condition.left.function:
            return "other_aggregation"
        if said.column is not None:
            if condition.second is not None:
                return "other_column"
            owners = self._owners(self._place(said.column))
            plain = bool(said.values) and said.values[0][0] in ("number", "day", "month")
            return self._fit(said.column, use, owners, plain)
        if said.concept:
            return self._concept(said.concept, use, said.at)
        if said.implied == "name" and said.table is not None:
            return self._named(said.table, use, condition)
        if said.implied == "year":
            return self._only_year(use, said)
        if said.implied == "place":
            return self._placed(use, said)
        return "other_column"

    def _placed(self, use: ColumnUse, said: Condition) -> str:
        """Whether "from Oslo" is about this column: the only place that holds such a value."""
        value = said.values[0][1]
        fitting = {
            noun.column
            for noun in self.names.nouns
            if noun.kind == "column" and noun.table == use.source.table and _about(noun, _PLACES)
        }
        if use.column not in fitting:
            return "other_column"
        rivals = [
            column
            for column in sorted(fitting - {use.column})
            if not self.data.same_rows(use.source.table, use.column, column, value)
        ]
        return "ambiguous_column" if rivals else ""

    def _named(self, unit: Unit, use: ColumnUse, condition: SqlCondition) -> str:
        if not self._mentions_table(unit, use.source.table):
            own = unit.is_column() and self._fit(unit, use) == ""
            return "" if own else "other_table"
        if condition.second is not None:
            return ""
        columns = name_columns(self.names.schema, use.source.table)
        texts = [use.column] if not columns else columns[:1]
        if use.column in texts:
            return ""
        return self._fit(unit, use) if use.column in columns else "other_column"

    def _only_year(self, use: ColumnUse, said: Condition) -> str:
        dated = [
            n.column
            for n in self.names.nouns
            if n.kind == "column" and n.table == use.source.table and n.dated
        ]
        years = [c for c in dated if "year" in c.lower()]
        if use.column not in dated:
            return "other_column"
        if len(dated) == 1 or years == [use.column]:
            return ""
        return "ambiguous_column"

    def _same(self, said: Condition, condition: SqlCondition) -> str:
        """Whether comparison and value agree; else which of them does not."""
        if condition.sign in ("null", "known"):
            return "" if said.sign == condition.sign else "wrong_comparison"
        if said.sign == "flag":
            return self._same_flag(said, condition)
        if said.sign in ("null", "known"):
            return "wrong_comparison"
        use = condition.left.use
        if use is not None:
            wanted = interval_of(
                condition, use.part, self.data.has_times(use.source.table, use.column)
            )
            if wanted is not None:
                stated = interval_said(said.sign, said.values)
                if stated is None or stated != wanted:
                    return _interval_fault(stated, wanted)
                return ""
        if said.sign != condition.sign:
            return (
                "wrong_comparison" if _equal(said.values, condition.values) else "missing_condition"
            )
        if condition.sign in ("in", "not in"):
            told = sorted(text for _, text in said.values)
            return "" if told == sorted(condition.values) else "wrong_value"
        return "" if _equal(said.values, condition.values) else "wrong_value"

    @staticmethod
    def _same_flag(said: Condition, condition: SqlCondition) -> str:
        if condition.sign != "=" or len(condition.values) != 1:
            return "wrong_comparison"
        positive = condition.values[0].strip().lower() in ("1", "t", "y", "yes", "true", "on")
        negative = condition.values[0].strip().lower() in ("0", "f", "n", "no", "false", "off")
        if not positive and not negative:
            return "wrong_value"
        return "" if positive != said.negated else "wrong_value"

    def _nested(self, condition: SqlCondition, block: Block, low: int, high: int) -> None:
        inner = condition.inner
        if inner is None:
            return
        if condition.sign in ("in", "not in"):
            self._membership(condition, inner, low, high)
        elif condition.sign == "=":
            self._extreme_of_all(condition, inner, low, high)
        else:
            self._compared(condition, inner, low, high)

    def _membership(self, condition: SqlCondition, inner: Block, low: int, high: int) -> None:
        table = inner.sources[0].table
        places = [p for p, unit in self.clauses.none if self._mentions_table(unit, table)]
        if condition.sign == "in" or not places:
            self._find("missing_condition", f"no {table}")
            return
        for nested in inner.conditions:
            use = nested.left.use
            same_column = inner.selected[0].use
            if nested.sign == "known" and use == same_column:
                continue
            self._condition(nested, inner, places[0], high)
        self._inner_reference(condition, inner)

    def _inner_reference(self, condition: SqlCondition, inner: Block) -> None:
        outer, selected = condition.left.use, inner.selected[0].use
        if outer is None or selected is None:
            self._find("other_join", "NOT IN")
            return
        self._check_reference(
            [
                k
                for k in self.names.references
                if (k.table, k.column, k.to_table, k.to_column)
                == (selected.source.table, selected.column, outer.source.table, outer.column)
            ],
            f"{selected.column} = {outer.column}",
        )

    def _extreme_of_all(self, condition: SqlCondition, inner: Block, low: int, high: int) -> None:
        value = inner.selected[0]
        if value.function not in ("min", "max") or value.use is None or condition.left.use is None:
            self._find("unreadable", "sub-query")
            return
        if value.use.column != condition.left.use.column:
            self._find("other_column", value.use.column)
        if not self.clauses.ties:
            self._find("missing_condition", "all that share an extreme")
        self._extreme_order(Value(condition.left.use), "desc" if value.function == "max" else "asc")
        for nested in inner.conditions:
            self._condition(nested, inner, low, high)

    def _compared(self, condition: SqlCondition, inner: Block, low: int, high: int) -> None:
        value = inner.selected[0]
        wrong = "missing_condition"
        for said in list(self.left):
            if not said.values or said.values[0][0] not in ("aggregate", "row"):
                continue
            kind, function = said.values[0]
            if kind == "aggregate" and function != value.function:
                wrong = "other_aggregation"
                continue
            if kind == "row" and value.function:
                wrong = "other_aggregation"
                continue
            column = self._condition_column(said, condition)
            if column:
                wrong = column
                continue
            if said.sign != condition.sign:
                wrong = "wrong_comparison"
                continue
            target = value.use
            if said.inner is not None and target is not None and self._fit(said.inner, target):
                wrong = "other_column"
                continue
            if (
                target is None
                or condition.left.use is None
                or target.column != condition.left.use.column
            ):
                if said.inner is None:
                    wrong = "other_column"
                    continue
            self.left.remove(said)
            for nested in inner.conditions:
                self._condition(nested, inner, said.at, high)
            return
        self._find(
            wrong, f"{condition.left.use.column if condition.left.use else ''} {condition.sign}"
        )

    # Names: which column a mention is, and whose.

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

    # Once, joins, tables, and what is left.

    def _once(self) -> None:
        blocks = [self.query.first]
        says = bool(self.clauses.once)
        distinct = any(b.distinct or any(v.distinct for v in b.selected) for b in blocks)
        if self.query.operation:
            return
        if says and not distinct:
            self._find("unsaid_once", "DISTINCT")
        if distinct and not says:
            self._find("missing_once", "DISTINCT")

    def _joins(self) -> None:
        for block in self.query.blocks():
            for join in block.joins:
                keys = [join.reference] if join.reference else []
                self._check_reference(keys, f"{join.child.table} - {join.parent.table}")

    def _check_reference(self, keys: Sequence[object], about: str) -> None:
        if not keys or keys[0] is None:
            self._find("other_join", about)
            return
        key = keys[0]
        siblings = [
            other
            for other in self.names.references
            if (other.table, other.to_table) == (key.table, key.to_table)  # type: ignore[attr-defined]
        ]
        if len(siblings) < 2:
            return
        roles = [n.reference for n in self.names.nouns if n.kind == "role"]
        if key not in roles:
            others = [k for k in siblings if k in roles]
            if any(self._says_role(k) for k in others):
                self._find("other_join", about)
            return
        if not self._says_role(key):
            self._find("other_join", about)

    def _says_role(self, key: object) -> bool:
        """Whether the text says which of several references is meant.

        Where the rows that refer are called as the reference is, only "the influence of" and
        "whose influence" say it.
        """
        for place, unit in enumerate(self.row.units):
            if unit.mention is None or not self._role_said(unit.mention, key):
                continue
            shared = any(s >= 1 and n.table == key.table for s, n in unit.mention.of_kind("table"))  # type: ignore[attr-defined]
            alone = self.row.word(place + 1) == "of" or self.row.word(place - 1) == "whose"
            if not shared or alone:
                return True
        return False

    @staticmethod
    def _role_said(mention: Mention, key: object) -> bool:
        roles = mention.of_kind("role")
        return bool(roles) and any(n.reference == key and s > roles[0][0] - NEAR for s, n in roles)

    def _tables(self) -> None:
        for block in self.query.blocks():
            for source in block.sources:
                said = (self._mentions_table(u, source.table) for u in self.row.units)
                if not any(said) and not self._said_in_column(source.table):
                    self._find("missing_table", source.table)
        for unit in self.row.units:
            if unit.is_table() and not unit.used:
                if set(self._tables_of(unit)) & self.tables:
                    unit.used = True
                elif not unit.is_column():
                    self._find("other_table", unit.text)

    def _said_in_column(self, table: str) -> bool:
        """Whether a column is called with its table's name: "boat names"."""
        words = parts_of(table)
        for unit in self.row.units:
            fits = unit.mention.of_kind("column") if unit.mention else []
            if fits and fits[0][1].table == table:
                said = unit.text.lower().split()
                if any(alike(one, other) == 1 for one in said for other in words):
                    return True
        return False

    def _rest(self) -> None:
        for said in self.left:
            self._find(
                "unexplained_condition",
                " ".join(u.text for u in self.row.units[said.at : said.at + 4]),
            )
        for sign, number, _, _ in self.row.counts:
            if not (sign == ">=" and number == 1):
                self._find("unexplained_condition", f"{sign} {number} rows")
        if not self.spoken and [n for n, _ in self.row.limits if n != 1]:
            self._find("wrong_limit", str(self.row.limits[0][0]))
        if self.clauses.orders and not any(b.order for b in self.query.blocks()):
            self._find("missing_order", "said, but not done")
        self._functions_left()
        inner = [c for b in self.query.blocks() for c in b.conditions if c.sign == "not in"]
        if self.clauses.none and self.query.operation != "except" and not inner:
            self._find("unexplained_condition", f"no {self.clauses.none[0][1].text}")
        for place, unit in enumerate(self.row.units):
            if unit.used or unit.kind == "sign":
                continue
            if unit.kind == "word" and unit.word in STOP_WORDS:
                continue
            if unit.mention is not None and self._is_harmless(unit):
                continue
            self._find("unexplained_words", unit.text)

    def _functions_left(self) -> None:
        done = {
            v.function for b in self.query.blocks() for v in (*b.selected, *(x for x, _ in b.order))
        }
        done |= {c.left.function for b in self.query.blocks() for c in b.having}
        orders = [d for b in self.query.blocks() for _, d in b.order]
        for extreme in self.clauses.extremes:
            if extreme.function in done:
                continue
            if extreme.function in ("min", "max") and (orders or self.clauses.ties):
                continue
            self._find("other_aggregation", extreme.function)
        if self.clauses.most and not orders and not self.clauses.ties and not {"min", "max"} & done:
            self._find("missing_order", "most")
        if self.clauses.counted and not self._counts() and not self._asks_number():
            self._find("missing_count", "said, but not done")

    def _asks_number(self) -> bool:
        """Whether "how many" asks for a column: "How many beds does the room have?"."""
        uses = [v.use for v in self.query.first.selected if v.use and not v.function]
        for place in self.clauses.counted:
            unit = self.row.units[place + 1] if place + 1 < len(self.row.units) else None
            if unit is not None and any(not self._fit(unit, use) for use in uses):
                return True
        return False

    def _counts(self) -> bool:
        return any(
            v.function == "count"
            for b in self.query.blocks()
            for v in (*b.selected, *(x for x, _ in b.order), *(c.left for c in b.having))
        )

    def _is_harmless(self, unit: Unit) -> bool:
        """Whether a mention repeats what is asked for anyway: a table, a reference's words."""
        return unit.is_table() and bool(set(self._tables_of(unit)) & self.tables)


def _about(noun: Noun, concept: str) -> bool:
    return any(
        alike(way, idea) in (0.6, 1.0)
        for word in noun.words
        for way in word.ways
        for idea in concept.split()
        if word.missing
    )


def _equal(said: Sequence[tuple[str, str]], wanted: Sequence[str]) -> bool:
    if len(said) != len(wanted):
        return False
    return all(_same_value(text, other) for (_, text), other in zip(said, wanted, strict=True))


def _same_value(said: str, wanted: str) -> bool:
    if said == wanted:
        return True
    try:
        return float(said) == float(wanted)
    except ValueError:
        return False


def _interval_fault(stated: Interval | None, wanted: Interval) -> str:
    if stated is None:
        return "missing_condition"
    same_side = (stated.low == "") == (wanted.low == "") and (stated.high == "") == (
        wanted.high == ""
    )
    return "wrong_value" if same_side else "wrong_comparison"
