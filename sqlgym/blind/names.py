"""Names of a schema as nouns, and where a question mentions them.

A name is cut into words (`emp_hire_dt`, `roomName`), usual abbreviations stand for what they
shorten, units and the words of the table count for little. A reference whose column says more than
its table (`home_port_id`) is a noun for the rows that it leads to, and a table that only links
others may be called by their names.

A mention is a span of tokens that fits nouns: each of its words is one of the noun's, or a filler
such as "number" or "figure". All nouns that fit it are kept with how well they do, so that whoever
compares can see that another column fits as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from sqlgym.blind.words import Token, alike, singular, word_set
from sqlgym.database.schema import ForeignKey, Schema, Table

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+")
_ABBREVIATIONS = {
    word: tuple(written.split("|"))
    for word, written in (
        line.split()
        for line in """
        pct percentage|percent
        qty quantity
        amt amount
        dt date
        num number
        nr number
        no number
        nbr number
        cnt number|count
        dept department
        emp employee
        cust customer
        desc description
        addr address
        tel telephone|phone
        acct account
        avg average
        min minimum
        max maximum
        fname first+name
        lname last+name
        mname middle+name
        fullname full+name
        dob birth+date
        yr year
        lat latitude
        lon longitude
        lng longitude
        pop population
        loc location
        cat category
        prod product
        stu student
        mgr manager
        org organization|organisation
        tv tv|television
        edispl engine+displacement
        mpg mpg|miles+per+gallon
        from from|start|origin|departure|beginning
        to to|end|destination|arrival|until|ended|ends
        since since|start|beginning|joining|joined
        until until|end
        valid valid|validity
        member member|membership
        yn yn|flag
        cap cap|capacity
        sc sc|score
        fnd fnd|founded|founding
        pd pd|paid|payment
        nm name
        typ type
        abv alcohol+content
        ibu bitterness
        flg flag
        prc price
        tm time
        lead lead|leader
        registered registered|registration
        issued issued|issue
        returned returned|return
        opened opened|opening
        published published|publication
        enrolled enrolled|enrolment|enrollment
        deceased deceased|death|died
        shipped shipped|shipping|shipment
        delivered delivered|delivery
        """.strip().splitlines()
    )
}
_SMALL = word_set("of by on at in is has the a an as and or with for into per deg")
_KIND = word_set("date year time number code value type")
_UNITS = word_set(
    "m km cm mm kg g t nm s h min ms c kw w v l ml eur usd gbp km2 m2 m3 mg au deg pct day days"
    " hours hour minutes years"
)
_HOLDERS = word_set("data list info information table tbl record records detail details")
FILLERS = word_set("number figure value amount date year name code percentage time point")
_ROWS = word_set("record link member entry row item")
SKIPPED = word_set("of s")
_PLAIN = word_set("date year time number code value type name status kind")
OWN = 0.05
"""What it costs to leave out a column's word that its table has too."""
_SAID_OF_ROWS = 0.11
"""What marks the word that says what rows did at their own date; it may be left out."""
_DATED = word_set("date year since dt yr on at from to in out start end begin due day month")
MOST_KNOWN = 20_000
"""Words of questions whose nouns are remembered."""
LONGEST = 10
"""Tokens of a mention."""


@dataclass(frozen=True)
class Word:
    """One word of a noun: the ways to say it, and what it costs to leave it out."""

    ways: tuple[str, ...]
    missing: float

    def fit(self, word: str) -> float:
        """How well a word of the question says this one; 0 if not at all."""
        return max(alike(word, way) for way in self.ways)


@dataclass(frozen=True)
class Noun:
    """What can be mentioned: a column, a table, or the rows that a reference leads to (`role`)."""

    kind: str
    table: str
    column: str
    words: tuple[Word, ...]
    naming: bool = False
    dated: bool = False
    keyed: bool = False
    primary: bool = False
    numeric: bool = False
    reference: ForeignKey | None = None


@dataclass(frozen=True)
class Mention:
    """Tokens `start` to `end` (not included) and the nouns they fit, the best first."""

    start: int
    end: int
    fits: tuple[tuple[float, Noun], ...]

    def of_kind(self, *kinds: str) -> list[tuple[float, Noun]]:
        """The fits of some kinds."""
        return [(score, noun) for score, noun in self.fits if noun.kind in kinds]

    def is_column(self) -> bool:
        """Whether a column is among the best fits."""
        return bool(self.of_kind("column"))

    def is_table(self) -> bool:
        """Whether a table, or the rows of a reference, is among the fits."""
        return bool(self.of_kind("table", "role"))


def parts_of(identifier: str) -> list[str]:
    """The words of a name in small letters.

    >>> parts_of("emp_hireDate"), parts_of("TotalEnrollment_AY")
    (['emp', 'hire', 'date'], ['total', 'enrollment', 'ay'])
    """
    parts = [part.lower() for part in _PARTS.findall(identifier)]
    for place in range(len(parts) - 1, 0, -1):
        if parts[place] == "name" and parts[place - 1] in ("f", "l", "m"):
            parts[place - 1 : place + 1] = [parts[place - 1] + "name"]
    return parts


@lru_cache(maxsize=65536)
def _ways(part: str) -> tuple[tuple[str, ...], ...]:
    """The words that a part stands for, each with its alternatives."""
    written = _ABBREVIATIONS.get(part)
    if written is None:
        return ((part,),)
    if any("+" in way for way in written):
        long = next(way for way in written if "+" in way)
        return tuple((word,) for word in long.split("+"))
    return ((part, *written),)


@dataclass
class Names:
    """The nouns of a schema, found by the words that they are made of."""

    schema: Schema
    nouns: list[Noun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.references = list(references_of(self.schema))
        leads: dict[tuple[str, str], list[ForeignKey]] = defaultdict(list)
        for key in self.references:
            leads[key.table.lower(), key.column.lower()].append(key)
        self._by_way: dict[str, list[int]] = defaultdict(list)
        self._known: dict[str, tuple[int, ...]] = {}
        self._quoted: dict[str, list[Noun]] = defaultdict(list)
        for table in self.schema.tables:
            self._add(_table_noun(table.name, _table_words(table.name)))
            linked = [k.to_table for k in self.references if k.table == table.name]
            if len(set(linked)) > 1:
                words = [w for name in dict.fromkeys(linked) for w in _table_words(name)]
                self._add(_table_noun(table.name, words))
            for column in table.columns:
                self._add(_column_noun(table, column.name, column.type))
                for key in leads[table.name.lower(), column.name.lower()]:
                    self._add(_role_noun(key))

    def _add(self, noun: Noun | None) -> None:
        if noun is None:
            return
        place = len(self.nouns)
        self.nouns.append(noun)
        if noun.kind != "role":
            self._quoted[(noun.column or noun.table).lower()].append(noun)
        for way in [way for word in noun.words for way in word.ways] + ["name"] * noun.naming:
            self._by_way[way].append(place)

    def saying(self, word: str) -> Sequence[int]:
        """The nouns that a word may say part of."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            same = [way for way in self._by_way if alike(word, way) > 0]
            found = tuple(sorted({n for way in same for n in self._by_way[way]}))
            self._known[word] = found
        return found

    def says(self, word: str) -> bool:
        """Whether a word is one of the schema's own, whatever its ending."""
        return any(
            noun.words and max(w.fit(word) for w in noun.words) >= 0.8
            for noun in (self.nouns[place] for place in self.saying(word))
        )

    def mentions(self, tokens: Sequence[Token], free: Sequence[bool]) -> list[Mention]:
        """The mentions in a text, the longest first, none of which overlap.

        Args:
            tokens: The question.
            free: Which tokens may be part of a mention: not those of values.
        """
        spans: dict[tuple[int, int], list[tuple[float, Noun]]] = defaultdict(list)
        for start, token in enumerate(tokens):
            before = tokens[start - 1].lower if start else ""
            if (
                token.kind == "quote"
                and before in ("column", "columns", "table")
                and token.value.lower() in self._quoted
            ):
                spans[start, start + 1] = [(2.0, n) for n in self._quoted[token.value.lower()]]
            if not free[start] or not _can_begin(token):
                continue
            for place in self._candidates(tokens, start):
                for end, score in _spans(self.nouns[place], tokens, free, start):
                    spans[start, end].append((score, self.nouns[place]))
        return _chosen(spans, tokens)

    def _candidates(self, tokens: Sequence[Token], start: int) -> Sequence[int]:
        own = self.saying(tokens[start].lower)
        if singular(tokens[start].lower) not in FILLERS:
            return own
        for token in tokens[start + 1 : start + 4]:
            if token.kind == "word" and token.lower not in SKIPPED:
                return sorted({*own, *self.saying(token.lower)})
        return own


def references_of(schema: Schema) -> Iterable[ForeignKey]:
    """The declared references, and those that a name tells: `parent_product_id` of products."""
    declared = {(k.table, k.column) for t in schema.tables for k in t.foreign_keys}
    keys = {}
    for table in schema.tables:
        yield from table.foreign_keys
        primary = [c for c in table.columns if c.primary_key]
        if len(primary) == 1:
            keys[table.name] = primary[0].name
    for table in schema.tables:
        for column in table.columns:
            if (table.name, column.name) in declared:
                continue
            for other, key in keys.items():
                if (other, key) != (table.name, column.name) and _leads(column.name, other, key):
                    yield ForeignKey(table.name, column.name, other, key)


def _leads(column: str, table: str, key: str) -> bool:
    """Whether a column's name ends with that of a table and its key."""
    words, target = parts_of(column), parts_of(key)
    bare = [singular(w) for w in parts_of(table)]
    if target in (["id"], ["code"], ["number"]):
        target = [*bare, *target]
    if len(target) < 2 and len(parts_of(key)) < 2 and parts_of(key)[-1:] != ["id"]:
        return False
    return words[-len(target) :] == target


def _table_words(name: str) -> list[Word]:
    parts = parts_of(name)
    kept = [p for p in parts if p not in _HOLDERS] or parts
    words = []
    for part in parts:
        for ways in _ways(part) if part not in ("from", "to", "min", "max") else (((part,),)):
            small = part not in kept or (part in _SMALL)
            words.append(Word(ways, 0.0 if small else 0.6))
    return words


def _table_noun(name: str, words: list[Word]) -> Noun:
    return Noun("table", name, "", tuple(words))


def _column_noun(table: Table, column: str, kind: str) -> Noun:
    parts = parts_of(column) or [column.lower()]
    own = {singular(way) for p in parts_of(table.name) for ways in _ways(p) for way in (p, *ways)}
    words = []
    for place, part in enumerate(parts):
        unit = part == "min" and place == len(parts) - 1
        for ways in (("min", "minute"),) if unit else _ways(part):
            words.append(Word(ways, _price(part, place, parts, own)))
    counted = any(t in kind.upper() for t in ("INT", "REAL", "NUM", "DEC", "FLOA", "DOUB"))
    naming = {singular(p) for p in parts} <= own and not counted
    dated = bool(_DATED & set(parts)) or "DATE" in kind.upper() or "TIME" in kind.upper()
    known = table.column(column)
    held = set(parts) & _HELD
    if dated and held:
        words = [Word(tuple(sorted(own)), OWN) if held & set(w.ways) else w for w in words]
    if dated and (held or "year" in parts or not counted) and _is_own_date(parts, own | held):
        said = ("occurred",) if own & _ACCIDENTS else ()
        words.append(Word((*_HAPPENED, *said), _SAID_OF_ROWS))
    primary = known is not None and known.primary_key
    keyed = primary or any(key.column == column for key in table.foreign_keys)
    return Noun("column", table.name, column, tuple(words), naming, dated, keyed, primary, counted)


_HAPPENED = tuple(
    sorted(word_set("made placed taken given issued posted written sent took held cast"))
)
"""What is said of rows at their own date: orders placed in May."""
_HELD = word_set("made placed taken held given borrowed rented")
"""Whose date is the date of the row: appointments are held at the appointment date."""
_ACCIDENTS = word_set("incident accident event fault failure outage")
"""Rows of which it is said that they occurred."""


def _is_own_date(parts: list[str], own: set[str]) -> bool:
    """Whether a date is called after nothing but its table, or not at all."""
    others = [p for p in parts if p not in _DATED and p not in ("time", "timestamp")]
    return all(any(alike(part, word) for word in own) for part in others)


def _price(part: str, place: int, parts: list[str], own: set[str]) -> float:
    """What it costs to leave a word of a column out."""
    if part == "id":
        return 0.6
    if part in _SMALL:
        return 0.1 if part in ("at", "in", "on") and place == 0 and len(parts) > 1 else 0.0
    if part in ("from", "to"):
        return 0.3
    if part in _UNITS and place > 0:
        return 0.02
    if len(parts) > 1 and (
        singular(part) in own or any(way in own for ways in _ways(part) for way in ways)
    ):
        return OWN
    if part in _KIND and len(parts) > 1:
        return 0.15
    return 0.5


def _role_noun(key: ForeignKey) -> Noun | None:
    parts = [p for p in parts_of(key.column) if p not in ("id", "code")]
    target = {singular(p) for p in parts_of(key.to_table)}
    extra = [
        p
        for p in parts
        if singular(p) not in _KIND
        and not any(alike(way, t) for ways in _ways(p) for way in ways for t in target)
    ]
    if not extra:
        return None
    words: list[Word] = []
    for part in parts:
        missing = 0.4 if part in extra else 0.05
        words.extend(Word(ways, missing) for ways in _ways(part))
    said = {singular(p) for p in parts}
    for part in parts_of(key.to_table):
        if singular(part) not in said:
            words.extend(Word(ways, 0.0) for ways in _ways(part))
    return Noun("role", key.to_table, "", tuple(words), reference=key)


_NEVER_FIRST = word_set(
    "from to by the each out up off as no with higher lower greater less more fewer larger"
    " smaller older younger longer shorter later earlier"
)


def _can_begin(token: Token) -> bool:
    if token.kind == "word":
        return token.lower not in SKIPPED and token.lower not in _NEVER_FIRST
    return token.kind == "number"


def _spans(
    noun: Noun, tokens: Sequence[Token], free: Sequence[bool], start: int
) -> list[tuple[int, float]]:
    """The ends at which a span from `start` fits a noun, with how well it does."""
    left = list(noun.words)
    ends: list[tuple[int, float]] = []
    fitted, fillers, said, solid, in_order = 0.0, 0, 0, False, len(noun.words) > 1
    plain = True
    lightest = _lightest(noun)
    for place in range(start, min(len(tokens), start + LONGEST)):
        token = tokens[place]
        if not free[place]:
            break
        word = token.lower
        if token.kind == "sign" or word in ("or", "and"):
            if said and word in ("-", "–"):
                continue
            follows = tokens[place + 1].lower if place + 1 < len(tokens) else ""
            if said and word == "and" and singular(follows) == "time" and noun.dated:
                continue
            opens = follows not in _NEVER_FIRST and singular(follows) not in FILLERS
            if said and word in (",", "or") and in_order and opens:
                continue
            break
        if token.kind not in ("word", "number"):
            break
        best = max(left, key=lambda w: w.fit(word), default=None)
        fit = best.fit(word) if best else 0.0
        if noun.kind == "table" and fit < 1 and word.endswith("ed"):
            fit = 0.0
        if noun.kind == "role" and (fit < 0.8 or word == "born" or word.endswith("ed")):
            fit = 0.0
        if (
            fit
            and best
            and noun.kind == "column"
            and best.missing == OWN
            and _stands_for_rows(tokens, place, said)
        ):
            fit = 0.0
        if best and fit and (said or best.missing):
            in_order = in_order and noun.words.index(best) == said
            left.remove(best)
            fitted += fit
            said += 1
            solid = solid or (best.missing >= lightest and token.kind == "word")
            plain = plain and singular(word) in _PLAIN
        elif _is_passed_over(noun, word, left, place > start):
            continue
        elif _is_filler(noun, word, tokens[place - 1].lower if place else ""):
            fillers += word != "place"
        else:
            break
        score = _score(noun, left, fitted, fillers, said, tokens[start : place + 1])
        if score < 0.8 and plain and said:
            continue
        if best and fit and not best.missing:
            continue
        if score > 0 and (solid or not said):
            ends.append((place + 1, score))
    return ends


def _lightest(noun: Noun) -> float:
    """What a word has to cost at least if a mention may consist of it alone."""
    costs = [w.missing for w in noun.words if w.missing != _SAID_OF_ROWS]
    return min(0.1, max(costs, default=0.0))


def _is_passed_over(noun: Noun, word: str, left: Sequence[Word], is_inside: bool) -> bool:
    """Whether a word between those of a noun says nothing: "of", or "in" before a year."""
    if word == "in" and any(w.ways[0].isdecimal() for w in left):
        return True
    return word in SKIPPED and is_inside and noun.kind == "column"


def _stands_for_rows(tokens: Sequence[Token], place: int, said: int) -> bool:
    """Whether a table's word is no part of a column: "orders placed", "the order's date"."""
    after = tokens[place + 1].text if place + 1 < len(tokens) else ""
    word = tokens[place].lower
    before = tokens[place - 1].lower if place else ""
    many = singular(word) != word and (not said or before == "of")
    verb = after.lower().endswith("ed") or after.lower() in _HAPPENED
    return after in ("'", "’") or many or (not said and verb)


def _is_filler(noun: Noun, word: str, before: str) -> bool:
    plain = singular(word)
    if (before, word) == ("took", "place"):
        return True
    if noun.kind != "column":
        return plain in _ROWS
    if plain in ("date", "year"):
        return noun.dated
    if plain in ("name", "title"):
        return noun.naming
    if plain == "address":
        return any("email" in w.ways for w in noun.words)
    if plain == "id":
        return noun.keyed
    if noun.dated and not noun.numeric and plain != "time":
        return False
    if noun.keyed or any("id" in w.ways for w in noun.words):
        return False
    return plain in FILLERS


def _score(
    noun: Noun, left: list[Word], fitted: float, fillers: int, said: int, span: Sequence[Token]
) -> float:
    missing = sum(word.missing for word in left if word.missing != _SAID_OF_ROWS)
    if noun.kind == "column" and noun.naming and not said:
        plain = [singular(t.lower) for t in span]
        return 0.7 if plain in (["name"], ["title"]) else 0.0
    if not said or (noun.kind == "role" and any(w.missing >= 0.4 for w in left)):
        return 0.0
    if noun.kind == "table":
        required = [w for w in noun.words if w.missing]
        missing = sum(w.missing for w in left)
        if required and missing >= 0.6 * len(required):
            return 0.0
    extra = 0.2 if noun.kind == "role" else 0.0
    if noun.primary and [t.lower for t in span] in (["id"], ["ids"]):
        extra = 0.3
    return fitted - missing - 0.1 * fillers + extra


def _weight(word: str) -> float:
    if word in SKIPPED:
        return 0.0
    return 0.5 if singular(word) in FILLERS or singular(word) in _ROWS else 1.0


def _chosen(
    spans: dict[tuple[int, int], list[tuple[float, Noun]]], tokens: Sequence[Token]
) -> list[Mention]:
    """The longest spans, those that fit better first, without overlaps."""

    def weight(span: tuple[int, int]) -> tuple[float, float, int]:
        best = max(score for score, _ in spans[span])
        length = sum(_weight(tokens[i].lower) for i in range(*span))
        return (-length, -best, span[0])

    for start, end in list(spans):
        if tokens[start].lower in ("number", "numbers") and end - start > 2:
            rows = [
                n.table for s, n in spans.get((start + 2, end), ()) if n.kind == "table" and s > 0.9
            ]
            kept = [
                (score, noun)
                for score, noun in spans[start, end]
                if noun.numeric or not rows or any("number" in w.ways for w in noun.words)
            ]
            after = tokens[end].lower if end < len(tokens) else ""
            if singular(after) in _ROWS:
                kept = []
            if kept and rows:
                spans[start, end] = kept + [
                    f for f in spans[start + 2, end] if f[1].kind == "table"
                ]
            elif kept:
                spans[start, end] = kept
            else:
                del spans[start, end]
    taken: set[int] = set()
    chosen = []
    for span in sorted(spans, key=weight):
        best = max(score for score, _ in spans[span])
        if best < 0.25 or taken.intersection(range(*span)):
            continue
        taken.update(range(*span))
        fits = sorted(spans[span], key=lambda fit: (-fit[0], fit[1].kind == "column"))
        chosen.append(Mention(*span, tuple(fits)))
    return sorted(chosen, key=lambda mention: mention.start)
