"""Values in a question, and the comparisons around them: every condition that its words state.

The question is a row of units: mentions of columns and tables, values, words and signs. Around each
value the words of the comparison are read ("at least", "or earlier", "other than"), and then the
column: before the comparison ("whose age is at most 30"), after the value ("with three beds"),
in an adjective ("older than 30"), or none where a thing is called by its name ("the pier Old
Quay") or only a year is said ("from before 1950"). What is compared with an aggregate or with
another row is read in the same way, with "the average of ..." in the place of the value.

What is read here is what the text says; whether it is so in the SQL is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlgym.blind.names import Mention
from sqlgym.blind.phrases import (
    ADJECTIVES,
    AFTER,
    AGGREGATES,
    BEFORE,
    COPULAS,
    GENERIC,
    REACH,
    STRONGEST,
    UNIT_SIGNS,
    UNIT_WORDS,
    Unit,
    plain_unit,
    says_no_name,
)
from sqlgym.blind.words import Token, singular, word_set

_ASIDES = {("leave", "out"), ("skip", "the"), ("write", "the", "month"), ("do", "not", "list")}
_NO_FLAG = word_set("most first last least than")


@dataclass
class Condition:
    """A comparison that the text states.

    Attributes:
        sign: `=`, `<>`, `<`, `<=`, `>`, `>=`, between, in, prefix, suffix, contains, null, known,
            month-of-year or flag.
        values: Pairs of a kind (number, text, day, month, month-of-year, aggregate, row) and text.
        column: Where the column is mentioned, if it is.
        concept: What the column is about, where an adjective says it.
        implied: "name" or "year" where nothing says the column.
        function: The aggregation of the column, in a condition on groups.
        at: The place of the first unit.
    """

    sign: str
    values: tuple[tuple[str, str], ...]
    at: int
    column: Unit | None = None
    concept: str = ""
    implied: str = ""
    function: str = ""
    negated: bool = False
    inner: Unit | None = None
    table: Unit | None = None


@dataclass
class Units:
    """The units of a question, with the conditions, row counts and limits found among them."""

    units: list[Unit]
    conditions: list[Condition] = field(default_factory=list)
    counts: list[tuple[str, int, int, Unit]] = field(default_factory=list)
    limits: list[tuple[int, int]] = field(default_factory=list)
    grouped: int = -1

    def word(self, place: int) -> str:
        """The word at a place, or an empty one."""
        return self.units[place].word if 0 <= place < len(self.units) else ""

    def use(self, start: int, end: int) -> None:
        """Mark units as explained."""
        for unit in self.units[max(0, start) : end]:
            unit.used = True

    def read(self) -> None:
        """Find what the values of the question are compared with."""
        for place in range(len(self.units)):
            self._aside_at(place)
        for place in range(len(self.units)):
            if self._is_value(place) and place > self.grouped and not self.units[place].used:
                self._value_at(place)
        for place in range(len(self.units)):
            self._target_at(place)
            self._state_at(place)
            self._unit_at(place)

    def _aside_at(self, place: int) -> None:
        """Sentences that ask nothing: rows to leave out that a join leaves out, how to write."""
        texts = tuple(u.text.lower() for u in self.units[place : place + 3])
        if self.units[place].used:
            return
        if texts[:2] in _ASIDES or texts in _ASIDES:
            while place < len(self.units) and self.units[place].text not in (".", "?", "!"):
                self.units[place].used = True
                place += 1

    def _unit_at(self, place: int) -> None:
        """A unit that an answer is wanted in: ", in km"."""
        if self.word(place) == "in" and not self.units[place].used:
            end = self._skip_units(place + 1)
            if end == place + 1 and end < len(self.units):
                end += singular(self.units[end].text.lower()) in UNIT_WORDS
            if end > place + 1 and (end == len(self.units) or self.units[end].kind == "sign"):
                self.use(place, end)

    def _is_value(self, place: int) -> bool:
        return 0 <= place < len(self.units) and self.units[place].kind == "value"

    def _value_at(self, place: int) -> None:
        last, sign, values = self._group(place)
        self.grouped = last
        after = self._skip_units(last + 1, place)
        low = place
        if sign == "between":
            low = place - 1 if self.word(place - 1) in ("between", "from") else place
            if low == place and values[0][0] == "number" and self.word(place + 1) == "and":
                last, sign, values = place, "", values[:1]
                self.grouped = last
                after = self._skip_units(last + 1, place)
        after, sign = self._after_sign(after, sign)
        low, sign = self._before_sign(low, sign)
        if sign == "between" or sign == "in":
            after = self._skip_included(after)
        self._attach(low, after, sign, values)

    def _group(self, place: int) -> tuple[int, str, tuple[tuple[str, str], ...]]:
        """The values that stand together: a range, a choice, or one alone."""
        here = self.units[place].value
        second = self._skip_units(place + 1, place)
        if self.word(second) in ("and", "to", "through") and self._is_value(second + 1):
            ranged = self.word(place - 1) in ("between", "from")
            if ranged:
                return second + 1, "between", (here, self.units[second + 1].value)
        values, last, after = [here], place, place + 1
        while True:
            step = after
            while self.units[step : step + 1] and (
                self.units[step].text == "," or self.word(step) in ("or",)
            ):
                step += 1
            if step == after or not self._is_value(step):
                break
            values.append(self.units[step].value)
            last, after = step, step + 1
        return last, "in" if len(values) > 1 else "", tuple(values)

    def _skip_units(self, place: int, first: int = -1) -> int:
        """The place after the unit of a number."""
        start = place
        while place < len(self.units) and place < start + 4:
            unit = self.units[place]
            if unit.word == "per" and start < place:
                after = self.units[place + 1].text.lower() if place + 1 < len(self.units) else ""
                if singular(after) in UNIT_WORDS:
                    place += 1
                    continue
            measured = unit.text in UNIT_SIGNS or singular(unit.word) in UNIT_WORDS
            named = singular(unit.text.lower()) in UNIT_WORDS
            if not measured and not (named and self._has_column(first)):
                break
            place += 1
        return place

    def _has_column(self, place: int) -> bool:
        """Whether the column of a value stands before it: then a unit after it is no column."""
        if place < 0:
            return False
        low, sign = self._before_sign(place, "")
        low -= self.word(low - 1) in ("from", "between") and not sign
        return (
            self._column_before(low, Condition(sign or "=", (("number", ""),), low))[0] is not None
        )

    def _skip_included(self, place: int) -> int:
        texts = [u.text.lower() for u in self.units[place : place + 4]]
        if texts[:2] == ["(", "both"] and "included" in texts and len(texts) > 3:
            return place + len(texts) - (")" not in texts) * 0 + (")" not in texts)
        for phrase in (["inclusive"], [",", "inclusive"], ["(", "inclusive", ")"]):
            if texts[: len(phrase)] == phrase:
                return place + len(phrase)
        return place

    def _after_sign(self, after: int, sign: str) -> tuple[int, str]:
        for length in (2, 1):
            words = tuple(self.word(after + step) for step in range(length))
            if words in AFTER:
                return after + length, AFTER[words]
        words = tuple(self.word(after + step) for step in range(3))
        if words == ("of", "any", "year"):
            return after + 3, "month-of-year"
        return after, sign

    def _before_sign(self, low: int, sign: str) -> tuple[int, str]:
        """Where the words before a value begin, and the comparison that they say."""
        for length in (5, 4, 3, 2, 1):
            words = tuple(self.word(low - length + step) for step in range(length))
            if words in BEFORE:
                said = BEFORE[words]
                if sign == "in" and said == "<>":
                    return low - length, "not in"
                return low - length, (said if not sign or said in ("<>",) else sign)
        if self.word(low - 1) == "than":
            return self._than(low, sign)
        for words, step in ((("the", "year"), 2), (("year",), 1)):
            if words == tuple(self.word(low - step + k) for k in range(step)):
                return self._before_sign(low - step, sign)
        return low, sign

    def _than(self, low: int, sign: str) -> tuple[int, str]:
        place = low - 2
        if self.word(place) in ADJECTIVES or self.word(place) in GENERIC:
            return place, sign
        return low, sign

    def _attach(self, low: int, after: int, sign: str, values: tuple[tuple[str, str], ...]) -> None:
        """Find the column of a comparison; keep it as a condition, a count of rows or a limit."""
        adjective = self.word(low)
        found = Condition(sign or "=", values, low)
        if adjective in ADJECTIVES and self.word(low + 1) == "than":
            concept, direction = ADJECTIVES[adjective]
            flips = self.word(low - 1) == "less"
            found.concept, found.sign = (
                concept,
                {">": "<", "<": ">"}[direction] if flips else direction,
            )
            low -= int(self.word(low - 1) in ("more", "less"))
            if (
                adjective in GENERIC
                and self._column_before(low, Condition("=", values, low), True)[0]
            ):
                found.concept = ""
        if not sign and values[0][0] == "number" and self._by_number(low):
            found.implied = "number"
            self.use(low - 1, after)
            self.conditions.append(found)
            return
        if not found.concept and self._counts_rows(low, after, sign, values):
            return
        if self.word(low) == "in" and self.word(low - 1) == "not":
            found.sign = "<>"
        column, start = None, low
        if sign == "contains" and self.word(after) == "in":
            column, after = self._column_after(after, found)
        if column is None:
            column, start = self._column_before(low, found)
        from_place = self.word(low - 1) == "from" and values[0][0] == "text"
        if column is None and not found.concept and not from_place:
            column, after = self._column_after(after, found)
            after = self._skip_included(after) if sign == "between" else after
        if column is None and not found.concept and not found.implied:
            if self.word(low - 1) == "the" and values[0][0] == "text":
                low -= 1
            if self.word(low) == "in" and values[0][0] == "text":
                found.implied, start = "place", low - (found.sign == "<>")
            elif (
                self.word(low - 1) in ("from", "in")
                and values[0][0] == "text"
                and sign in ("", "in")
            ):
                found.implied, start = "place", low - 1
                if self.word(low - 2) == "not":
                    found.sign, start = "<>", low - 2
            elif self.word(low - 1) in ("from", "of", "in", "since") or sign in (
                ">",
                "<",
                ">=",
                "<=",
            ):
                found.implied = "year" if values[0][0] != "text" else "place"
                start = low - 1 if self.word(low - 1) in ("from", "of", "in") else low
            else:
                return
        found.column = column
        self.use(min(start, low), after)
        self.conditions.append(found)

    def _by_number(self, low: int) -> bool:
        """Whether a row is called by its number: "the group with the number 5"."""
        words = [self.word(low - step) for step in (3, 2, 1)]
        return words in (
            ["with", "the", "number"],
            ["of", "the", "number"],
            ["has", "the", "number"],
        )

    def _column_before(
        self, low: int, found: Condition, adjective: bool = False
    ) -> tuple[Unit | None, int]:
        place = low - 1
        while place >= max(0, low - REACH) and self.word(place) in COPULAS:
            place -= 1
        if self.word(place) == "not" and found.sign == "=":
            found.sign, place = "<>", place - 1
            while place >= max(0, low - REACH) and self.word(place) in COPULAS:
                place -= 1
        if place < 0 or self.units[place].mention is None:
            return None, low
        unit = self.units[place]
        if self._is_named(unit, found, place, low):
            found.implied, found.table = "name", unit
            unit.used = True
            return None, low
        near = found.sign in ("<", ">", "<=", ">=", "between") and not unit.prefers_column()
        near = near and (
            place == low - 1 or self.word(low - 1) in ("is", "are", "was", "were", "of")
        )
        if (
            unit.is_table()
            and near
            and not adjective
            and not found.concept
            and self._of_group(place)
        ):
            return self._aggregated(self._of_group(place) - 1, found)
        if found.concept or not unit.is_column():
            return None, low
        beside = place == low - 1 or self.word(low - 1) in ("is", "are", "of")
        partial = found.sign in ("prefix", "suffix", "contains")
        if unit.is_table() and not partial and not (unit.may_be_column() and beside):
            return None, low
        if unit.used and found.sign in ("=", "in") and self.word(low - 1) not in ("is", "are"):
            return None, low
        return self._aggregated(place, found)

    def _is_named(self, unit: Unit, found: Condition, place: int, low: int) -> bool:
        if self.word(low) == "in" or self.word(low - 1) == "from":
            return False
        if not unit.is_table() or found.sign not in ("=", "<>", "in", "not in"):
            return found.sign in ("prefix", "contains") and unit.is_table() and not unit.is_column()
        return found.values[0][0] in ("text", "quote")

    def _of_group(self, place: int) -> int:
        """The place of "of" in "average price of the products" before "above 5"; 0 if none."""
        for step in range(1, 4):
            if self.word(place - step) == "of" and place - step - 1 >= 0:
                before = self.units[place - step - 1]
                if before.is_column() and self._function_before(place - step - 1):
                    return place - step
        return 0

    def _function_before(self, place: int) -> str:
        return AGGREGATES.get(self.word(place - 1), "")

    def _aggregated(self, place: int, found: Condition) -> tuple[Unit, int]:
        found.function = self._function_before(place)
        return self.units[place], place - bool(found.function)

    def _counts_rows(
        self, low: int, after: int, sign: str, values: tuple[tuple[str, str], ...]
    ) -> bool:
        """Whether the value is a number of rows: "at least two loans", "the three oldest"."""
        if values[0][0] != "number" or len(values) > 1:
            return False
        place = after
        number = int(float(values[0][1]))
        again = (sign, number) == (">=", 1) and self.word(low - 1) == "and" and self.counts
        if again and not self.units[after].is_table():  # "and at least one with a price of 3"
            self.counts.append((sign, number, low, self.counts[-1][3]))
            self.use(low, after)
            return True
        while not sign and (self.word(place) in AGGREGATES or self.word(place) in STRONGEST):
            place += 1
        follows = self.units[place] if place < len(self.units) else None
        times = follows is not None and follows.text.lower() == "times"
        if follows is not None and (times or follows.is_table()) and sign:
            if not times and follows.is_column() and not self._prefers_table(place):
                return False
            self.counts.append((sign, number, low, follows))
            self.use(low, after + times)
            return True
        if not sign and follows is not None and follows.is_table() and self._prefers_table(place):
            self.limits.append((number, low))
            self.use(low, after)
            return True
        return False

    def _prefers_table(self, place: int) -> bool:
        mention = self.units[place].mention
        return mention is not None and mention.fits[0][1].kind != "column"

    def _column_after(self, after: int, found: Condition) -> tuple[Unit | None, int]:
        place = after
        while self.word(place) in ("in", "the", "as", "their", "its", "a", "of", "for", "within"):
            place += 1
        if place < len(self.units) and self.units[place].is_column():
            return self.units[place], place + 1
        return None, after

    def _target_at(self, place: int) -> None:
        """Comparisons with an aggregate or with another row: "above the average of all boats"."""
        if self.word(place) not in ("the", "that") or self.units[place].used:
            return
        low, sign, adjective, between = self._comparison_before(place)
        if not sign and not adjective:
            return
        found = Condition(sign, (), low)
        if self.word(place + 1) in AGGREGATES:
            found.values = (("aggregate", AGGREGATES[self.word(place + 1)]),)
            end = place + 2
            if end < len(self.units) and self.units[end].is_column():
                found.inner, end = self.units[end], end + 1
        elif self.word(place) == "that" and self.word(place + 1) == "of":
            found.values, end = (("row", ""),), place + 2
        elif place + 1 < len(self.units) and self.units[place + 1].is_table():
            found.values, end = (("row", ""),), place + 1
        else:
            return
        if between is not None:
            found.column = between
            self.use(low, end)
        elif adjective and adjective not in GENERIC:
            found.concept = ADJECTIVES[adjective][0]
            self.use(low - (self.word(low - 1) in ("more", "less")), end)
        else:
            column, start = self._column_before(low, found)
            found.column = column
            if column is None and adjective in ADJECTIVES:
                found.concept = ADJECTIVES[adjective][0]
            self.use(min(start, low), end)
        self.conditions.append(found)

    def _comparison_before(self, place: int) -> tuple[int, str, str, Unit | None]:
        """Where the comparison before a place begins, its sign, adjective, and a column inside."""
        if self.word(place - 1) == "than":
            back = place - 2
            between = None
            if back >= 0 and self.units[back].is_column() and not self.units[back].used:
                between, back = self.units[back], back - 1
            adjective = self.word(back)
            if adjective in ADJECTIVES and (between is None or adjective not in GENERIC):
                sign = ADJECTIVES[adjective][1]
                if self.word(back - 1) == "less":
                    sign = {">": "<", "<": ">"}[sign]
                return back, GENERIC.get(adjective, sign), adjective, between
            if adjective in GENERIC:
                return back, GENERIC[adjective], adjective, between
            return place, "", "", None
        for length in (3, 2, 1):
            words = tuple(self.word(place - length + step) for step in range(length))
            sign = BEFORE.get(words, "")
            if sign in ("<", ">", "<=", ">=") and words not in (("by",), ("until",), ("since",)):
                return place - length, sign, "", None
        return place, "", "", None

    def _state_at(self, place: int) -> None:
        """Columns that are, or are not, recorded; flags that are, or are not, so."""
        unit = self.units[place]
        if not unit.is_column() or unit.used:
            return
        before = [
            self.units[place - step].text.lower() if place >= step else "" for step in range(1, 6)
        ]
        after = [self.word(place + step) for step in (1, 2, 3)]
        missing = {"recorded", "known", "given", "available", "listed", "specified"}
        if before[0] in missing and before[1] in ("no", "a", "any"):
            sign = "null" if before[1] == "no" else "known"
            self._keep_state(sign, place, place - 2, place + 1)
        elif before[0] == "no" and after[0] in missing:
            self._keep_state("null", place, place - 1, place + 2)
        elif before[0] == "no" and after[0] in ("is", "are") and after[1] in missing:
            start = place - 3 if before[1:3] == ["which", "for"] else place - 1
            self._keep_state("null", place, start, place + 3)
        elif after[0] in ("is", "are") and after[1] in ("unknown", "missing", "empty", "blank"):
            self._keep_state("null", place, place, place + 3)
        elif after[0] in ("is", "are") and after[1] == "not" and after[2] in missing:
            self._keep_state("null", place, place, place + 4)
        elif after[0] in ("is", "are") and after[1] == "not" and after[2] in ("empty", "missing"):
            self._keep_state("known", place, place, place + 4)
        elif after[0] in ("is", "are") and after[1] in missing:
            self._keep_state("known", place, place, place + 3)
        else:
            self._flag_at(place, before)

    def _flag_at(self, place: int, before: Sequence[str]) -> None:
        mention = self.units[place].mention
        if mention is not None and mention.of_kind("column")[0][1].dated:
            return
        if self.word(place + 1) in _NO_FLAG or self.word(place + 1) in AGGREGATES:
            return
        if before[0] in ("not",) and before[1] in ("are", "is", "was", "were"):
            self._keep_state("flag", place, place - 2, place + 1, True)
        elif before[0] in ("are", "is", "was", "were"):
            self._keep_state("flag", place, place - 1, place + 1)
        elif before[0] == "as" and before[1] == "marked":
            negated = before[2] == "not"
            step = 3 if negated else 2
            self._keep_state("flag", place, place - step, place + 1, negated)
        elif (
            before[0] == "no"
            and before[1] in ("have", "has", "with")
            and not self._prefers_table(place)
        ):
            self._keep_state("flag", place, place - 2, place + 1, True)
        elif before[0] in ("a", "an") and before[1] in ("have", "has"):
            if before[2] in ("that", "which") and not self._is_their_table(place):
                self._keep_state("flag", place, place - 2, place + 1)
        elif (
            before[0] in ("have", "has")
            and not self._is_their_table(place)
            and (before[1] in ("that", "which") or (place > 1 and self.units[place - 2].is_table()))
        ):
            self._keep_state("flag", place, place - 1, place + 1)

    def _is_their_table(self, place: int) -> bool:
        """Whether rows are had here, of which more is said: "have singers with a known age"."""
        after = [unit.text for unit in self.units[place + 1 : place + 2]]
        return self.units[place].is_table() and bool(after) and after[0] not in _NO_MORE

    def _keep_state(
        self, sign: str, place: int, start: int, end: int, negated: bool = False
    ) -> None:
        column = self.units[place]
        self.use(start, end)
        self.conditions.append(Condition(sign, (), start, column, negated=negated))


_NO_MORE = frozenset([",", ".", "?", "!", ";"])


def units_of(tokens: Sequence[Token], mentions: Sequence[Mention]) -> Units:
    """The units of a question, from its tokens and the mentions among them."""
    begins = {mention.start: mention for mention in mentions}
    units: list[Unit] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        mention = begins.get(place)
        if mention is not None and not says_no_name(mention, tokens):
            text = " ".join(t.text for t in tokens[place : mention.end])
            units.append(Unit("mention", place, mention.end, text, mention))
            place = mention.end
            continue
        units.append(plain_unit(token, place, tokens[place - 1].lower if place else ""))
        place += 1
    return Units(units)
