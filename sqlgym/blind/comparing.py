"""What the text says against what the SQL does.

Each fact of the SQL needs words of the question that say it, and each word that means something
needs a fact: what is selected, counted and grouped by, how it is ordered and how many are wanted,
whether each value is listed once, which tables are joined. What is left over is a finding.
"""

from __future__ import annotations

from sqlgym.blind.clauses import HOW, STOP_WORDS
from sqlgym.blind.conditions import Conditions
from sqlgym.blind.fitting import Finding
from sqlgym.blind.names import parts_of
from sqlgym.blind.phrases import Unit
from sqlgym.blind.statements import Block, ColumnUse, SqlCondition, Value, name_columns
from sqlgym.blind.words import alike, word_set

_OF_A_DATE = word_set("date dt day year time at on in when occurred happened")
"""Words of a column's name that tell no more than that it is when a row was."""


class Comparison(Conditions):
    """One question against one query; `compare` gives what does not agree."""

    def compare(self) -> list[Finding]:
        """All disagreements."""
        beyond = self._beyond()
        if beyond:
            return [Finding("unreadable", beyond)]
        end = len(self.row.units) + 1
        first, second = self.query.first, self.query.second
        middle = end
        if second is not None:
            middle = self.clauses.splits.get(self.query.operation, -1)
            if middle < 0:
                self._find("missing_set", self.query.operation)
                middle = end
        elif self.clauses.splits:
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

    def _beyond(self) -> str:
        """What the query does that no question is read for; empty if there is nothing such."""
        first, second = self.query.first, self.query.second
        for block in self.query.blocks():
            if any(c.inner for c in block.having):
                return "a sub-query under HAVING"
            if any(c.left.distinct for c in block.having):
                return "distinct values under HAVING"
            if (
                len({c.left.use.source for c in block.conditions if c.alternative and c.left.use})
                > 1
            ):
                return "OR between rows of two tables"
            named = [c for c in block.conditions if c.sign == "in" and c.values]
            if named and block.groups and block.limit == 1 and self._chooses(block, named[0]):
                return "a choice between groups that are named"
        if second is not None:
            if [s.table for s in first.sources[:1]] != [s.table for s in second.sources[:1]]:
                return "lists of two tables"
            if [j.reference for j in first.joins] != [j.reference for j in second.joins]:
                return "lists by two references"
        return ""

    @staticmethod
    def _chooses(block: Block, condition: SqlCondition) -> bool:
        use = condition.left.use
        return use in block.groups or any(v.use == use and not v.function for v in block.selected)

    @staticmethod
    def _shape(block: Block) -> list[tuple[str, str, str]]:
        return [
            (v.function, v.use.source.table if v.use else "", v.use.column if v.use else "")
            for v in block.selected
        ]

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
            self._aggregate(value)
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
        if not found and not self._goes_without_saying(use, block) and not self._own_date(use):
            self._find(worst, f"{use.source.table}.{use.column}")

    def _own_date(self, use: ColumnUse) -> bool:
        """Whether a year or month is that of the rows themselves: "in which year were there"."""
        own = {part[:4] for part in parts_of(use.source.table)}
        rest = [part for part in parts_of(use.column) if part not in _OF_A_DATE]
        return bool(use.part) and all(part[:4] in own for part in rest)

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
            use = value.use
            if not block.groups or use is None or value.function:
                continue
            if use not in block.groups and use.source not in keyed:
                self._find("missing_grouping", f"{use.column} is not grouped by")
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

    def _tables(self) -> None:
        for block in self.query.blocks():
            for source in block.sources:
                said = (self._mentions_table(u, source.table) for u in self.row.units)
                if (
                    not any(said)
                    and not self._said_in_column(source.table)
                    and not self._passed_through(source.table)
                ):
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
                " ".join(
                    u.text for u in self.row.units[said.at : said.at + 4] if u.text not in ".?!"
                ),
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
        for unit in self.row.units:
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
