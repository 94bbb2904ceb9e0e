"""What a question asks beside its conditions: extremes, counts, orders, once, each, and sets.

The units of a question are read again, around the words that say an aggregation ("the average"),
an extreme ("the oldest", "hired most recently", "the most loans"), an order ("sorted by"), that
values are listed once, that rows are counted, that two lists are put together, or that there are no
rows of a kind. A word that says such a thing is marked as used only where it was understood.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlgym.blind.phrases import AGGREGATES, REACH, Unit
from sqlgym.blind.values import Units
from sqlgym.blind.words import word_list, word_set

_SUPERLATIVES = {
    "oldest": ("age birth born founded built opened", "max"),
    "youngest": ("age birth born founded", "min"),
    "heaviest": ("weight mass", "max"),
    "lightest": ("weight mass", "min"),
    "tallest": ("height", "max"),
    "cheapest": ("price cost fee fare", "min"),
    "dearest": ("price cost fee fare", "max"),
    "costliest": ("price cost fee fare", "max"),
    "deepest": ("depth", "max"),
    "shallowest": ("depth", "min"),
    "widest": ("width", "max"),
    "narrowest": ("width", "min"),
    "fastest": ("speed", "max"),
    "slowest": ("speed", "min"),
    "richest": ("budget income wealth", "max"),
    "biggest": ("size area population capacity", "max"),
    "largest": ("size area population capacity", "max"),
    "smallest": ("size area population capacity", "min"),
    "highest": ("height altitude elevation", "max"),
    "lowest": ("height altitude elevation", "min"),
    "longest": ("length duration distance", "max"),
    "shortest": ("length duration distance|height", "min"),
    "newest": ("year date", "max"),
    "latest": ("year date", "max"),
    "earliest": ("year date", "min"),
    "strongest": ("strength power", "max"),
}
_ONCE = word_set("different distinct once unique repeating repeats duplicates repetition")
_COUNTED = word_set("count counted counts counting")
_EACH = word_set("each every per by whichever")
_DIRECTIONS = {
    **dict.fromkeys(word_list("descending decreasing falling"), "desc"),
    **dict.fromkeys(word_list("ascending increasing rising"), "asc"),
}
_SORTED = word_set("sorted ordered ranked arranged sort order rank listed")
_SORTED_BY = ("by", "on")
_OF_NONE = word_set("any a an the have had single of")
_ARTICLES = word_set("the a an of its their his her value values in column")


HOW = {
    "long": "length duration distance",
    "old": "age",
    "tall": "height",
    "high": "height altitude elevation",
    "heavy": "weight mass",
    "deep": "depth",
    "wide": "width",
    "fast": "speed",
    "expensive": "price cost fee fare",
}
"""What is asked for by "how" and an adjective."""


@dataclass
class Extreme:
    """An aggregation or an extreme that the text asks for; `over` if it is one of aggregations."""

    function: str
    at: int
    column: Unit | None = None
    concept: str = ""
    over: bool = False


@dataclass
class Clauses:
    """What is asked beside conditions, each with the place where it stands."""

    row: Units
    extremes: list[Extreme] = field(default_factory=list)
    most: list[tuple[str, int, Unit | None]] = field(default_factory=list)
    orders: list[tuple[str, str, int, Unit | None]] = field(default_factory=list)
    once: list[int] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)
    each: list[int] = field(default_factory=list)
    none: list[tuple[int, Unit]] = field(default_factory=list)
    splits: dict[str, int] = field(default_factory=dict)
    ties: bool = False
    parts: list[tuple[str, int]] = field(default_factory=list)

    def read(self) -> None:
        """Find everything, orders before the extremes that they are told with."""
        places = range(len(self.row.units))
        for place in places:
            self._part_at(place)
        for place in places:
            self._order_at(place)
        for place in places:
            self._split_at(place)
            self._ties_at(place)
        for place in places:
            self._none_at(place)
            self._extreme_at(place)
        for place in places:
            self._word_at(place)

    def _words(self, place: int, *words: str) -> bool:
        return all(self.row.word(place + step) == word for step, word in enumerate(words))

    def _unit(self, place: int) -> Unit | None:
        return self.row.units[place] if 0 <= place < len(self.row.units) else None

    def _column(self, place: int) -> Unit | None:
        unit = self._unit(place)
        return unit if unit is not None and unit.is_column() else None

    def _part_at(self, place: int) -> None:
        """Years and months that are counted: "in each year", "the year in which"."""
        unit = self.row.units[place]
        text = unit.text.lower()
        before = self.row.word(place - 1)
        if text in ("month", "months") and (before == "calendar" or "calendar" in text):
            self.parts.append(("%m", place))
            self.row.use(place - 1, place + 1)
            for phrase in (("whatever", "the", "year"), ("of", "any", "year")):
                for gap in (1, 2):
                    if self._starts(place + gap, phrase):
                        self.row.use(place + gap, place + gap + 3)

    def _starts(self, place: int, phrase: tuple[str, ...]) -> bool:
        texts = tuple(u.text.lower() for u in self.row.units[place : place + len(phrase)])
        return texts == phrase

    def _order_at(self, place: int) -> None:
        row = self.row
        word = row.word(place)
        if row.units[place].used:
            return
        if word in _DIRECTIONS and row.word(place + 1) == "order":
            column, end = self._of_column(place + 2)
            self._keep_order(_DIRECTIONS[word], "", place, column, place, end)
        elif word == "alphabetical" or word == "alphabetically":
            reverse = row.word(place - 1) in ("reverse", "reversed")
            end = place + 1 + (row.word(place + 1) == "order")
            column, end = self._of_column(end)
            self._keep_order(
                "desc" if reverse else "asc", "text", place, column, place - reverse, end
            )
        elif word in _SORTED and row.word(place + 1) in _SORTED_BY:
            self._sorted_at(place)
        elif word == "from" and row.word(place + 1) == "the":
            self._from_to(place)

    def _of_column(self, place: int) -> tuple[Unit | None, int]:
        end = place
        while end < place + REACH and self.row.word(end) in ("of", "the", "by", "their", "its"):
            end += 1
        column = self._column(end)
        return (column, end + 1) if column is not None else (None, place)

    def _keep_order(
        self, direction: str, kind: str, at: int, column: Unit | None, start: int, end: int
    ) -> None:
        self.orders.append((direction, kind, at, column))
        self.row.use(start, end)

    def _sorted_at(self, place: int) -> None:
        column, end = self._of_column(place + 1)
        if column is None:
            return
        step = end
        while (
            step < end + REACH
            and (unit := self._unit(step))
            and (unit.text in (",", "(") or unit.word in ("in", "from", "with", "the"))
        ):
            step += 1
        word = self.row.word(step)
        if self.row.word(step) == "most" and self.row.word(step + 1) == "recent":
            step += 1
        function = "max" if word == "most" else AGGREGATES.get(word, "")
        direction = ""
        if function in ("min", "max") or word in _SUPERLATIVES:
            function = function or _SUPERLATIVES[word][1]
            if self.row.word(step + 1) in ("first", "to", "one", "value"):
                direction = "desc" if function == "max" else "asc"
        elif word in _DIRECTIONS:
            direction = _DIRECTIONS[word]
        if direction:
            stop = step + 2
            while stop < min(len(self.row.units), step + REACH) and self._trailing(stop):
                stop += 1
            self._keep_order(direction, "", place, column, place, stop)
        else:
            self._keep_order("asc", "", place, column, place, end)

    def _trailing(self, place: int) -> bool:
        word = self.row.word(place)
        return word in ("the", "to", "order", "first") or word in AGGREGATES

    def _from_to(self, place: int) -> None:
        def extreme(at: int) -> tuple[str, int]:
            if self._words(at, "most", "recent"):
                return "max", at + 2
            word = self.row.word(at)
            function = AGGREGATES.get(word) or _SUPERLATIVES.get(word, ("", ""))[1]
            return (function, at + 1) if function in ("min", "max") else ("", at)

        first, end = extreme(place + 2)
        if not first or not self._words(end, "to", "the"):
            return
        second, end = extreme(end + 2)
        if second and second != first:
            column = self._column(end)
            direction = "desc" if first == "max" else "asc"
            self._keep_order(direction, "", place, column, place, end + (column is not None))

    def _split_at(self, place: int) -> None:
        """Where two lists meet, and how: both, either, one but not the other."""
        words = [self.row.word(place + step) for step in range(5)]
        if words[:5] == ["but", "do", "not", "have", "any"]:
            self._keep_split("except", place, 5)
        elif words[0] == "but" and words[1] in ("not", "no", "of", "never", "without", "none"):
            self._keep_split("except", place, 3 if words[1] == "of" else 2)
        elif words[:2] == ["leaving", "out"] or words[0] in ("excluding", "except"):
            self._keep_split("except", place, 2 if words[1] == "out" else 1)
        elif words[0] == "or" and words[1] in ("among", "by", "of"):
            self._keep_split("union", place, 2)
        elif words[0] == "or" and self._is_again(place + 1):
            self._keep_split("union", place, 1)
        elif words[:3] == ["and", "those", "of"]:
            self._keep_split("union", place, 3)
        elif (
            words[:2] == ["both", "among"]
            or (words[0] == "both" and self._is_table(place + 1))
            or (words[0] == "shared" and not self.row.counts)
            or words[:2] == ["in", "both"]
            or words[:3] == ["as", "well", "as"]
        ):
            self._keep_both(place)
        elif words[:3] == ["and", "at", "least"] and any(
            n == 1 and at < place for _, n, at, _ in self.row.counts[:9]
        ):
            self._keep_split("intersect", place, 1)

    def _is_again(self, place: int) -> bool:
        """Whether a table stands here that stood before: "have loans in 2019 or loans of"."""
        return self._is_table(place) and any(
            unit.is_table() and unit.text.lower() == self.row.units[place].text.lower()
            for unit in self.row.units[:place]
        )

    def _keep_split(self, kind: str, place: int, length: int) -> None:
        if kind not in self.splits:
            self.splits[kind] = place
            self.row.use(place, place + length)

    def _keep_both(self, place: int) -> None:
        """The "and" that parts what is in both lists: the last one before a table."""
        if "intersect" in self.splits:
            return
        if self.row.word(place) == "as":
            self._keep_split("intersect", place, 3)
            return
        for step in range(place + 1, min(len(self.row.units), place + 3 * REACH)):
            if self.row.word(step) != "and":
                continue
            after = step + 1
            while self.row.word(after) in ("among", "the", "by", "a", "in", "of"):
                after += 1
            unit = self._unit(after)
            if unit is not None and (unit.is_table() or unit.word == "those"):
                self.splits["intersect"] = step
                self.row.use(place, place + 1)
                return

    def _ties_at(self, place: int) -> None:
        texts = [u.text.lower() for u in self.row.units[place : place + 6]]
        several = (["if", "there", "are", "several"], ["if", "several", "share", "it"])
        shared = texts[0] == "all" and bool({"share", "tie", "tied"} & set(texts))
        if texts[:4] in several or shared:
            self.ties = True
            self._use_sentence(place)
        elif texts[:2] in (["including", "ties"], ["with", "ties"]):
            self.ties = True
            self.row.use(place, place + 2)

    def _use_sentence(self, place: int) -> None:
        if self.row.units[place].used:
            return
        while place < len(self.row.units) and self.row.units[place].text not in (".", "?", "!"):
            self.row.units[place].used = True
            place += 1

    def _none_at(self, place: int) -> None:
        """Rows that there must not be: "without any loans", "have no loans", "not ... of any"."""
        word = self.row.word(place)
        step = place + 1
        if self.row.units[place].used and place not in self.splits.values():
            return
        if word in ("no", "without", "never", "any", "not", "zero", "lack"):
            while step < place + REACH and self.row.word(step) in _OF_NONE:
                step += 1
            unit = self._unit(step)
            if unit is not None and unit.is_table() and (word != "any" or self._negated(place)):
                self.none.append((place, unit))
                self.row.use(place, step)

    def _negated(self, place: int) -> bool:
        for step in range(place - 1, max(-1, place - 8), -1):
            if self.row.word(step) in ("not", "never", "nor", "n't"):
                self.row.units[step].used = True
                return True
        return False

    def _extreme_at(self, place: int) -> None:
        unit = self.row.units[place]
        if unit.used:
            return
        word = unit.word
        if word in ("most", "fewest", "least"):
            self._most_at(place, "max" if word == "most" else "min")
        elif word in AGGREGATES or word in _SUPERLATIVES:
            self._aggregate_at(place, word)
        elif word in ("first", "last", "earliest", "latest") and self._verb_before(place):
            function = "min" if word in ("first", "earliest") else "max"
            self.extremes.append(Extreme(function, place, self._column(place - 1)))
            unit.used = True

    def _verb_before(self, place: int) -> bool:
        column = self._column(place - 1)
        before = self._unit(place - 2)
        if column is not None and before is not None and before.is_table():
            return True
        steps = range(max(0, place - REACH), place)
        if column is not None and any(self._words(step, "which", "of", "the") for step in steps):
            return True
        return column is not None and self.row.word(place - 2) in (
            "was",
            "were",
            "is",
            "that",
            "which",
        )

    def _most_at(self, place: int, function: str) -> None:
        follows = self._unit(place + 1)
        after = follows.text.lower() if follows is not None else ""
        if after == "recent" or after == "recently":
            column = self._column(place + 2) if after == "recent" else self._column(place - 1)
            if column is None:
                column = self._last_column(place)
            self.extremes.append(Extreme("max" if function == "max" else "min", place, column))
            self.row.use(place, place + 2)
        elif after == "expensive":
            self.extremes.append(Extreme(function, place, None, "price cost fee fare"))
            self.row.use(place, place + 2)
        elif after in HOW:
            self.extremes.append(Extreme(function, place, None, HOW[after]))
            self.row.use(place, place + 2)
        elif after in ("common", "frequent", "often", "frequently", "popular"):
            self.most.append((function, place, None))
            self.row.use(place, place + 2)
        else:
            if follows is not None and follows.mention is not None:
                self.most.append((function, place, follows))
                self.row.units[place].used = True
            elif self.row.word(place + 1) in ("of", "") and place + 1 < len(self.row.units):
                self.most.append((function, place, None))
                self.row.units[place].used = True

    def _aggregate_at(self, place: int, word: str) -> None:
        function = AGGREGATES.get(word) or _SUPERLATIVES[word][1]
        if shared := self._shared_column(place):
            self.extremes.append(Extreme(function, place, shared))
            self.row.units[place].used = True
            return
        step = place + 1
        while step < place + REACH and self.row.word(step) in _ARTICLES and not self._is_all(step):
            step += 1
        second = AGGREGATES.get(self.row.word(step), "")
        concept = _SUPERLATIVES.get(word, ("", ""))[0]
        if second and function in ("min", "max"):
            self.extremes.append(Extreme(function, place, over=True))
            self.row.units[place].used = True
            return
        column = self._column(step)
        if (
            column is not None
            and word in AGGREGATES
            and (column.may_be_column() or column.text.lower().startswith("number") or not concept)
        ):
            self.extremes.append(Extreme(function, place, column))
        elif word not in AGGREGATES or (concept and self._is_table(step) and step == place + 1):
            self.extremes.append(Extreme(function, place, None, concept))
        elif function in ("min", "max"):
            self.extremes.append(
                Extreme(function, place, self._last_column(place), concept, self._averaged(place))
            )
        elif self._is_all(step):
            self.extremes.append(Extreme(function, place))
        else:
            return
        self.row.units[place].used = True

    def _shared_column(self, place: int) -> Unit | None:
        """The column of "the mean and then the highest age", said of the second only."""
        step = place + 1
        if self.row.word(step) != "and":
            return None
        while self.row.word(step) in ("and", "then", "the"):
            step += 1
        if self._words(step, "most", "recent"):
            return self._column(step + 2)
        return self._column(step + 1) if self.row.word(step) in AGGREGATES else None

    def _is_table(self, place: int) -> bool:
        unit = self._unit(place)
        return unit is not None and unit.is_table()

    def _is_all(self, place: int) -> bool:
        return self._words(place, "of", "all") or self._words(place, "of", "the")

    def _last_column(self, place: int) -> Unit | None:
        for step in range(place - 1, max(-1, place - REACH), -1):
            column = self._column(step)
            if column is not None and not column.used and column.prefers_column():
                return column
        return None

    def _averaged(self, place: int) -> bool:
        return any(e.function in ("avg", "sum") and e.at < place for e in self.extremes[-9:])

    def _word_at(self, place: int) -> None:
        unit = self.row.units[place]
        word = unit.word
        if word in _ONCE:
            self.once.append(place)
            unit.used = True
        elif word in _COUNTED or (word == "many" and self.row.word(place - 1) == "how"):
            self.counted.append(place)
            self.row.use(place - (word == "many"), place + 1)
        elif (word == "often" and self.row.word(place - 1) == "how") or (
            word in ("number", "numbers") and not unit.used
        ):
            self.counted.append(place)
            unit.used = True
        elif unit.text.lower() in ("share", "shared", "have") and self.row.counts:
            unit.used = True
        elif word in _EACH:
            self.each.append(place)
            unit.used = True


STOP_WORDS = word_set(
    """
    a an the of for to in on at by with from into and or that which who whose whom what where
    when how many is are was were be been being do does did has have had there their its his
    her it they them these those this such i me my you your we us our please can could would
    will tell give show list find name get return report write look up need want know see all
    each every any both either one ones only also just as than then so if not together along
    among over across out within between through via named called linked link belonging belong
    respectively order value values s exist exists occur occurs whatever figure figures part
    shown same first without records record entries rows row display present provide identify
    retrieve determine other about here asked letter word but group grouped fall fell come
    comes column table having result results question answer using
    """
)
"""Words that say nothing by themselves, or nothing that a schema could answer."""
