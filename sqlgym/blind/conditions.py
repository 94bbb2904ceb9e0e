"""Whether the conditions that a text states are those of the SQL.

Each condition of the SQL needs one of the text with the same column, comparison and value; dates
are compared as intervals, numbers by their size, texts exactly. Those of a second list, or of a
sub-query, stand behind the words that open it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlgym.blind.dates import Interval, interval_of, interval_said
from sqlgym.blind.fitting import Fitting, is_about
from sqlgym.blind.names import parts_of
from sqlgym.blind.phrases import Unit
from sqlgym.blind.statements import Block, ColumnUse, SqlCondition, Value, name_columns
from sqlgym.blind.values import Condition

_PLACES = (
    "city town country location region state place hometown continent island district nation zone"
    " county province area origin"
)


class Conditions(Fitting):
    """The conditions of a question against those of a query."""

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
            for a, b in pairwise(words)
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
        if condition.sign == "null" and use and self._without(use):
            return
        for counted in list(self.row.counts):
            sign, number, at, unit = counted
            agrees = sign == condition.sign and _equal([("number", str(number))], condition.values)
            if (
                use
                and agrees
                and low <= at < high
                and unit.is_column()
                and not self._fit(unit, use)
            ):
                self.row.counts.remove(counted)
                unit.used = True
                return
        self._find(
            wrong, f"{use.column if use else '*'} {condition.sign} {' '.join(condition.values)}"
        )

    def _without(self, use: ColumnUse) -> bool:
        """Whether an empty reference is told as rows without what it refers to."""
        for key in self.names.references:
            if (key.table, key.column) != (use.source.table, use.column):
                continue
            for said in self.clauses.none:
                if self._mentions_table(said[1], key.to_table):
                    self.clauses.none.remove(said)
                    said[1].used = True
                    return True
        return False

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
        if said.implied == "number":
            return self._numbered(use)
        if said.implied == "place":
            return self._placed(use, said)
        return "other_column"

    def _numbered(self, use: ColumnUse) -> str:
        """Whether the number of a row is this column: its key, or the only number it has."""
        table = self.names.schema.get(use.source.table)
        columns = [c for c in table.columns if "number" in parts_of(c.name)] if table else []
        keys = [c.name for c in columns if c.primary_key] or [c.name for c in columns]
        if use.column not in keys:
            return "other_column"
        return "" if len(keys) == 1 else "ambiguous_column"

    def _placed(self, use: ColumnUse, said: Condition) -> str:
        """Whether "from Oslo" is about this column: the only place that holds such a value."""
        value = said.values[0][1]
        fitting = {
            noun.column
            for noun in self.names.nouns
            if noun.kind == "column" and noun.table == use.source.table and is_about(noun, _PLACES)
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
        if not places and self._passed_through(table):  # "linked to no supplier"
            outer = condition.left.use.source.table if condition.left.use else ""
            for place, unit in self.clauses.none:
                if any(self._mentions_table(unit, e) for e in self._linked_by(table) if e != outer):
                    places.append(place)
                    unit.used = True
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
            left = condition.left.use
            same = target is not None and left is not None and target.column == left.column
            if not same and said.inner is None:
                wrong = "other_column"
                continue
            self.left.remove(said)
            for nested in inner.conditions:
                self._condition(nested, inner, said.at, high)
            return
        self._find(
            wrong, f"{condition.left.use.column if condition.left.use else ''} {condition.sign}"
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
