"""Questions that a database cannot answer, made from the answerable ones of the same task set.

An agent that always answers has never been asked whether there is an answer. So a share of the
tasks may ask for something that is not there, near enough to tempt, in the words of a question of
the set itself:

    value    the one row that the question is about gets a name that no row has
    column   the column that is asked for becomes one that a table of the same kind has elsewhere
    table    a question about a table of another database is asked of one that has none like it

A count or a sum over nothing has an answer, so a name is exchanged only where the answer needs its
row to exist: the name picks one row, and no aggregate is taken. What is put in its place is in no
cell of the database, not even as words that are spread over one row, and is no near spelling of a
name that is. A column or a table is missing only if none of its words, and no word that is used for
the same thing (`ALIKE`), is in any name or cell of the database, and if it could not be computed
(`DERIVED`). What cannot be proved is not asked.

Which tasks are made depends on the task set alone; the share only says how many of them are taken.
"""

from __future__ import annotations

import functools
import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from rapidfuzz import fuzz
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import Database, open_database
from sqlgym.database.parsing import careful, parse
from sqlgym.database.schema import Column, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.synthesis.language import english, lexicon
from sqlgym.synthesis.language.lexicon import word_set
from sqlgym.synthesis.language.nouns import Noun, column_noun, table_noun, words_of
from sqlgym.synthesis.reading.references import is_unique, table_words
from sqlgym.synthesis.reading.world import literal
from sqlgym.tasks.gold import gold_of
from sqlgym.tasks.task import SqlTask, UnanswerableTask
from toolgym.errors import ConfigurationError, TaskRefused, ToolError
from toolgym.lazy import lazy
from toolgym.tasks import TaskSet

Kind = Literal["value", "column", "table"]
KINDS: Final[tuple[Kind, ...]] = ("value", "column", "table")

ALIKE: Final = tuple(
    frozenset(group.split())
    for group in """
    height altitude elevation tall high
    length distance long duration minute hour
    salary wage pay income earning stipend
    price cost fee fare rate amount charge value worth budget money euro dollar
    age birth born birthday dob year old
    date day month year time since when started founded opened joined built
    city town place home residence location address country region district nationality village
    origin area site port
    phone telephone mobile contact email mail
    job position role profession occupation speciality specialty rank function title
    weight mass load tonnage
    area size surface extent
    population inhabitant resident people
    sex gender
    status state condition stage phase
    kind type category genre class style form group family sort variety
    score grade mark rating point level result rank
    capacity seat size bed volume berth
    speed pace velocity knot
    language tongue
    colour color
    subject topic field theme discipline speciality specialty department course
    experience seniority tenure year
    name title label surname
    house team club group section
    power strength energy
    quantity number count stock amount
    book volume publication
    film movie
    course class lesson
    teacher instructor professor lecturer tutor
    student pupil learner
    doctor physician
    patient admission
    hut cabin shelter lodge
    river stream
    truck vehicle car lorry
    ship vessel boat ferry
    author writer
    award prize medal
    stay visit admission booking reservation
    trail route path line way
    treatment therapy procedure
    mission flight launch
    planet body moon
    mountain peak summit
    lake sea water river
    theatre theater venue stage hall cinema
    country nation state
    opera work composition play
    airport airfield
    loan borrowing
    sample specimen
    device machine instrument
    product article good
    run trial experiment
    order sale purchase delivery
    """.strip().splitlines()
)
"""Words of which each may stand for another; too many rather than too few."""
DERIVED: Final = word_set("""
    number total average mean count rate share percent percentage ratio rank sum maximum minimum
    first last latest earliest density age difference duration tenure seniority
""")
"""Words for what is often computed from something else."""
VAGUE: Final = word_set("""
    record item entry thing object event place location kind type detail info information link
    person people member customer client user employee staff guest visitor participant worker man
    woman adult child name title value note comment description remark text id code key number
    address status year date time day record data
""")
"""Words that might mean something else that a database has."""
NEAR: Final = 80.0
"""Similarity (0 to 100) from which a name may be another one, misspelt."""
_COMPARED: Final = 2_000
_OFFERED: Final = 40


@dataclass(frozen=True)
class _Source:
    """A database of the set, as it names things."""

    item: str
    path: Path
    database: Database

    @lazy
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.database.schema.tables if not table.is_view)

    @lazy
    def words(self) -> frozenset[str]:
        """All words of the names in the schema, the database's own included, and what is alike."""
        names = [self.item, self.path.stem]
        for table in self.database.schema.tables:
            names += [table.name, *(column.name for column in table.columns)]
        return alike(stem for name in names for stem in stems(name))

    @lazy
    def column_stems(self) -> frozenset[str]:
        """The words of the columns' names."""
        return frozenset(
            stem for table in self.tables for c in table.columns for stem in stems(c.name)
        )

    def lacks(self, text: str) -> bool:
        """Whether no row of any table has all words of a text; False where that is not known."""
        words = re.findall(r"\w+", text)
        if not words:
            return False
        try:
            return not any(
                self.database.query(_holding(table, words)).rows
                for table in self.tables
                if table.columns
            )
        except ToolError:
            return False

    def values(self, table: Table, column: Column) -> list[str]:
        """Some texts of a column, in the order of a hash."""
        sql = (
            f"SELECT DISTINCT {quoted(column.name)} FROM {quoted(table.name)}"
            f" WHERE typeof({quoted(column.name)}) = 'text' LIMIT {_COMPARED}"
        )
        try:
            rows = self.database.query(sql).rows
        except ToolError:
            return []
        return sorted((str(row[0]) for row in rows), key=_place)


def _holding(table: Table, words: Sequence[str]) -> str:
    """A query for a row that has every one of these words in some cell, whatever their case."""
    conditions = []
    for word in words:
        spellings = dict.fromkeys((word, word.lower(), word.upper(), word.title()))
        cells = [
            f"instr({quoted(column.name)}, {literal(spelling)}) > 0"
            for column in table.columns
            for spelling in spellings
        ]
        cells += [
            f"instr(lower({quoted(column.name)}), {literal(word.lower())}) > 0"
            for column in table.columns
        ]
        conditions.append(f"({' OR '.join(cells)})")
    return f"SELECT 1 FROM {quoted(table.name)} WHERE {' AND '.join(conditions)} LIMIT 1"


def stems(name: str) -> frozenset[str]:
    """The words of a name in the singular and in lower case, without those that say nothing.

    >>> sorted(stems("home_towns")), sorted(stems("number_of_seats"))
    (['home', 'town'], ['number', 'seat'])
    """
    words = {english.singular(word.lower()) for word in words_of(name) if len(word) > 1}
    return frozenset(words - lexicon.LINK_WORDS - {"id", "the"})


def alike(words: Iterator[str] | frozenset[str]) -> frozenset[str]:
    """Words, and all that may stand for one of them.

    >>> "altitude" in alike(frozenset(["height"]))
    True
    """
    own = frozenset(words)
    return own.union(*(group for group in ALIKE if group & own))


def _place(text: str) -> str:
    return hashlib.sha256(f"toolgym-unanswerable-{text}".encode("utf-8", "replace")).hexdigest()


# Mixing ------------------------------------------------------------------------------------------


def with_unanswerable(
    tasks: TaskSet[SqlTask], share: float, kinds: tuple[Kind, ...] = KINDS
) -> TaskSet[SqlTask]:
    """A task set of which a share has no answer, in places that depend on nothing but the tasks.

    The answerable tasks keep their order. If too few unanswerable ones can be made, some of the
    answerable ones are left out, so that the share holds.

    Args:
        share: Of the tasks of the new set, from above 0 to below 1.
        kinds: What may be missing.

    Raises:
        ConfigurationError: The share is out of range, or no unanswerable question can be made.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        raise ConfigurationError(
            f"unanswerable must be a share from 0 to below 1, got {share!r}."
        )
    return tasks if share == 0 else _mixed(tasks, float(share), kinds)


@functools.lru_cache(maxsize=32)
def _mixed(
    tasks: TaskSet[SqlTask], share: float, kinds: tuple[Kind, ...]
) -> TaskSet[SqlTask]:
    """One shared set for all copies of an environment."""
    wanted = max(1, round(len(tasks) * share / (1 - share)))
    made = make_unanswerable(tasks, wanted, kinds)
    if not made:
        raise ConfigurationError(
            f"no unanswerable question can be made from the {len(tasks)} tasks of {tasks.name}:"
            " leave out unanswerable=, or take a data set with more databases."
        )
    kept = list(tasks)
    if len(made) < wanted:
        most = max(1, round(len(made) * (1 - share) / share))
        chosen = sorted(sorted(range(len(kept)), key=lambda i: _place(kept[i].id))[:most])
        kept = [kept[index] for index in chosen]
    draw = random.Random("toolgym-unanswerable")
    places = frozenset(draw.sample(range(len(kept) + len(made)), len(made)))
    rest, new = iter(kept), iter(made)
    mixed: list[SqlTask] = [
        next(new) if place in places else next(rest) for place in range(len(kept) + len(made))
    ]

    def verify(task: SqlTask) -> None:
        if not isinstance(task, UnanswerableTask):
            refusal = tasks.refusal_of(task)
            if refusal is not None:
                raise refusal

    name = f"{tasks.name} with {len(made)} unanswerable"
    return TaskSet(mixed, name=name, verify=verify, refused=tasks.refused)


def make_unanswerable(
    tasks: TaskSet[SqlTask], most: int, kinds: tuple[Kind, ...] = KINDS
) -> list[UnanswerableTask]:
    """Unanswerable questions made from a task set, at most so many, each another one.

    Of one task the first that succeeds is taken, and others only once every task had its turn.
    """
    maker = _Maker(tasks)
    order = sorted(tasks, key=lambda task: _place(task.id))
    turns = [maker.variants(task, _rotated(kinds, place)) for place, task in enumerate(order)]
    made: dict[tuple[str, str], UnanswerableTask] = {}
    while turns and len(made) < most:
        going = []
        for variants in turns:
            task = next(variants, None)
            if task is None:
                continue
            going.append(variants)
            made.setdefault((task.item, task.question), task)
            if len(made) == most:
                break
        turns = going
    return list(made.values())


def _rotated(kinds: tuple[Kind, ...], by: int) -> tuple[Kind, ...]:
    return (*kinds[by % len(kinds) :], *kinds[: by % len(kinds)])


class _Maker:
    """Makes unanswerable tasks from those of one set."""

    def __init__(self, tasks: TaskSet[SqlTask]) -> None:
        self._tasks = tasks

    @lazy
    def _sources(self) -> dict[str, _Source]:
        found: dict[str, _Source] = {}
        for task in self._tasks:
            if task.item not in found and task.problem is None:
                found[task.item] = _Source(task.item, task.database, open_database(task.database))
        return found

    @lazy
    def _asked(self) -> frozenset[tuple[str, str]]:
        return frozenset((task.item, task.question) for task in self._tasks)

    def variants(self, task: SqlTask, kinds: tuple[Kind, ...]) -> Iterator[UnanswerableTask]:
        """The unanswerable tasks that can be made from one, at most one of each kind."""
        if self._tasks.refusal_of(task) is not None:
            return
        try:
            tree = parse(task.gold_sql)
            for kind in kinds:
                make = {"value": self._value, "column": self._column, "table": self._table}[kind]
                made = careful(lambda make=make: make(task, tree))  # type: ignore[misc]
                if made is not None and (made.item, made.question) not in self._asked:
                    yield made
        except (SqlglotError, TaskRefused):
            return

    # A value -------------------------------------------------------------------------------------

    def _value(self, task: SqlTask, tree: exp.Expr) -> UnanswerableTask | None:
        """The question with the name of another row, which is not there."""
        source = self._sources[task.item]
        for node in tree.find_all(exp.Literal):
            spot = _identified(source, node, tree)
            if spot is None or not _stands_once(node.this, task.question):
                continue
            if node.find_ancestor(exp.Select) is tree and len(gold_of(task).result.rows) != 1:
                continue
            table, column = spot
            name = self._absent_name(source, table, column, node.this)
            if name is None or not self._finds_nothing(source, task, node, name):
                continue
            why = (
                f"No row of {table.name} has {name!r} in {column.name}, and the words are in no"
                " row of any table."
            )
            question = _exchanged(task.question, node.this, name)
            return _task(task, "value", name, why, question)
        return None

    def _absent_name(
        self, source: _Source, table: Table, column: Column, value: str
    ) -> str | None:
        own = source.values(table, column)
        lowered = [each.casefold() for each in own]
        for name in self._names_like(source, table, column, value, own):
            if name.isascii() != value.isascii() and not name.isascii():
                continue
            near = any(fuzz.ratio(name.casefold(), each) >= NEAR for each in lowered)
            if not near and source.lacks(name):
                return name
        return None

    def _names_like(
        self, source: _Source, table: Table, column: Column, value: str, own: list[str]
    ) -> Iterator[str]:
        """Names of the same kind: of two real ones put together, or of another database."""
        words = value.split(" ")
        is_person = _kind_of(table) == "person"
        if is_person and len(words) == 2 and all(map(_is_capitalised, words)):
            others = [each.split(" ") for each in own]
            lasts = [w[1] for w in others if len(w) == 2 and _is_capitalised(w[1])]
            yield from (f"{words[0]} {last}" for last in lasts[:_OFFERED] if last != words[1])
        offered = []
        for other in self._sources.values():
            if other is source:
                continue
            for theirs in other.tables:
                match = theirs.column(column.name)
                if match is not None and _are_alike(table, theirs):
                    offered += other.values(theirs, match)[:_OFFERED]
        size = len(words)
        same_form = (each for each in offered if len(each.split(" ")) == size)
        yield from sorted(same_form, key=lambda each: _place(f"{value} {each}"))[:_OFFERED]

    def _finds_nothing(
        self, source: _Source, task: SqlTask, node: exp.Literal, name: str
    ) -> bool:
        """The gold SQL, asked of the new name, finds no row, or NULL alone."""
        edited = parse(task.gold_sql)
        places = [each for each in edited.find_all(exp.Literal) if each.this == node.this]
        if len(places) != 1:
            return False
        places[0].set("this", name)
        try:
            rows = source.database.query(edited.sql("sqlite")).rows
        except ToolError:
            return False
        return not any(cell is not None for row in rows for cell in row)

    # A column ------------------------------------------------------------------------------------

    def _column(self, task: SqlTask, tree: exp.Expr) -> UnanswerableTask | None:
        """The question with another column, which tables of this kind have elsewhere."""
        source = self._sources[task.item]
        if re.search(r"[,(;]| in | round", task.question):
            return None  # a unit or a form that would not fit
        spot = _projected(source, tree)
        if spot is None:
            return None
        table, column = spot
        noun = _noun(table, column)
        phrase = _phrase(noun, task.question)
        if phrase is None:
            return None
        for other, theirs, missing in self._columns_like(source, table, column):
            new = _noun(theirs, missing)
            said = new.one if phrase == noun.one else new.many
            if not source.lacks(new.one):
                continue
            why = (
                f"No column of {source.item} is the {new.one}, or has a word for it; the column"
                f" {theirs.name}.{missing.name} is of {other.item}."
            )
            question = _with_article(_exchanged(task.question, phrase, said))
            return _task(task, "column", new.one, why, question)
        return None

    def _columns_like(
        self, source: _Source, table: Table, column: Column
    ) -> Iterator[tuple[_Source, Table, Column]]:
        offered = [
            (other, theirs, each)
            for other in self._sources.values()
            if other is not source
            for theirs in other.tables
            if _are_alike(table, theirs)
            for each in theirs.columns
            if _is_askable(theirs, each, column) and not alike(stems(each.name)) & source.words
        ]
        yield from sorted(offered, key=lambda one: _place(f"{source.item} {one[2].name}"))

    # A table -------------------------------------------------------------------------------------

    def _table(self, task: SqlTask, tree: exp.Expr) -> UnanswerableTask | None:
        """The question asked of another database, which has nothing of the kind."""
        home = self._sources[task.item]
        used = {each.name.lower() for each in tree.find_all(exp.Table)}
        tables = [table for table in home.tables if table.name.lower() in used]
        asked = [table for table in tables if _asks_of(table, task.question)]
        names = {each.name.lower() for each in tree.find_all(exp.Column)}
        columns = frozenset(stem for name in names for stem in stems(name))
        if not asked:
            return None
        for target in self._targets(home, columns):
            for table in asked:
                missing = frozenset(table_words(table.name)[-1:])
                if missing & VAGUE or alike(missing) & target.words:
                    continue
                noun = table_noun(table.name)
                if not target.lacks(noun.one):
                    continue
                why = (
                    f"No table or column of {target.item} is about {noun.many}, or has a word for"
                    f" them; the table {table.name} is of {home.item}."
                )
                made = _task(task, "table", noun.many, why, task.question)
                return replace(
                    made, item=target.item, database=target.path, foreign_keys=(), evidence=""
                )
        return None

    def _targets(self, home: _Source, columns: frozenset[str]) -> list[_Source]:
        """Other databases, those first whose columns have most of the words that are asked for."""
        others = [
            (len(other.column_stems & columns), len(other.column_stems & home.column_stems), other)
            for other in self._sources.values()
            if other is not home and other.column_stems & columns
        ]
        others.sort(key=lambda one: (-one[0], -one[1], _place(f"{home.item} {one[2].item}")))
        return [other for *_, other in others]


def _task(
    task: SqlTask, missing: Kind, name: str, because: str, question: str
) -> UnanswerableTask:
    return UnanswerableTask(
        id=f"{task.id}-without-{missing}",
        question=question,
        item=task.item,
        gold_sql=task.gold_sql,
        database=task.database,
        hardness=task.hardness,
        evidence=task.evidence,
        foreign_keys=task.foreign_keys,
        missing=missing,
        name=name,
        because=because,
        made_from=task.id,
    )


# Reading a gold query ----------------------------------------------------------------------------


def _identified(
    source: _Source, node: exp.Literal, tree: exp.Expr
) -> tuple[Table, Column] | None:
    """The table and the column of which a text picks the one row that the query needs."""
    equal = node.parent
    if not node.is_string or not isinstance(equal, exp.EQ) or len(node.this) < 3:
        return None
    side = equal.left if equal.right is node else equal.right
    select = equal.find_ancestor(exp.Select)
    if not isinstance(side, exp.Column) or select is None or not _is_plain(select, tree):
        return None
    above = equal.parent
    while isinstance(above, exp.And | exp.Paren):
        above = above.parent
    if not isinstance(above, exp.Where) or above.parent is not select:
        return None
    spot = _column_of(source, side, select)
    if spot is None or not is_unique(source.database, spot[0], spot[1].name):
        return None
    return spot


def _is_plain(select: exp.Select, tree: exp.Expr) -> bool:
    """It computes nothing over rows, and its value is the answer or what others are compared to."""
    if select.args.get("group") or select.args.get("having") or select.args.get("distinct"):
        return False
    if any(each.find(exp.AggFunc, exp.Query) for each in select.expressions):
        return False
    if any(join.args.get("side") for join in select.args.get("joins") or []):
        return False
    if select is tree:
        return True
    above = select.parent
    compared = isinstance(above, exp.Subquery) and isinstance(
        above.parent, exp.GT | exp.GTE | exp.LT | exp.LTE | exp.EQ
    )
    outer = above.find_ancestor(exp.Select) if above is not None and compared else None
    return outer is tree and not any(each.find(exp.AggFunc) for each in tree.expressions)


def _column_of(
    source: _Source, column: exp.Column, select: exp.Select
) -> tuple[Table, Column] | None:
    """What a column of a query is, if just one of its tables has it."""
    tables = {each.alias_or_name.lower(): each.name for each in select.find_all(exp.Table)}
    found = []
    for alias, name in tables.items():
        table = source.database.schema.get(name)
        match = table.column(column.name) if table is not None else None
        if table is not None and match is not None and column.table.lower() in ("", alias):
            found.append((table, match))
    return found[0] if len(found) == 1 else None


def _projected(source: _Source, tree: exp.Expr) -> tuple[Table, Column] | None:
    """The one column that is asked for, plain or in an aggregate, and that nothing else depends on.
    """
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    columns = list(tree.expressions[0].find_all(exp.Column))
    if len(columns) != 1 or tree.expressions[0].find(exp.Count, exp.Query, exp.Binary):
        return None
    name = columns[0].name.lower()
    others = [each for each in tree.find_all(exp.Column) if each.name.lower() == name]
    return _column_of(source, columns[0], tree) if len(others) == 1 else None


# Words -------------------------------------------------------------------------------------------


def _noun(table: Table, column: Column) -> Noun:
    return column_noun(column.name, table_words(table.name), _is_number(column))


def _is_number(column: Column) -> bool:
    return any(word in column.type.upper() for word in ("INT", "REAL", "NUM", "FLOA", "DOUB"))


def _kind_of(table: Table) -> str:
    last = table_noun(table.name).last
    return "person" if last in lexicon.PERSONS else "place" if last in lexicon.PLACES else last


def _are_alike(one: Table, other: Table) -> bool:
    return _kind_of(one) == _kind_of(other)


def _is_askable(table: Table, column: Column, like: Column) -> bool:
    """A column with a readable name that could stand where another one does."""
    noun = _noun(table, column)
    words = stems(column.name)
    keys = {key.column.lower() for key in table.foreign_keys}
    return bool(
        noun.is_readable
        and not noun.counts
        and not column.primary_key
        and column.name.lower() not in keys
        and _is_number(column) == _is_number(like)
        and words
        and not words & (DERIVED | VAGUE)
        and not re.match(r"(is|has|was|with|can) ", noun.one)
    )


def _phrase(noun: Noun, question: str) -> str | None:
    """The noun as the question has it: once, and as what is asked for."""
    for text in (noun.one, noun.many):
        if noun.is_readable and re.search(
            rf"\b(?:the|highest|lowest|total|average|largest|smallest) {re.escape(text)}\b", question
        ):
            return text if _stands_once(text, question) else None
    return None


def _asks_of(table: Table, question: str) -> bool:
    noun = table_noun(table.name)
    lowered = question.lower()
    return noun.is_readable and any(
        re.search(rf"\b{re.escape(text)}\b", lowered) for text in (noun.one, noun.many)
    )


def _stands_once(text: str, question: str) -> bool:
    return len(re.findall(rf"(?<!\w){re.escape(text)}(?!\w)", question)) == 1


def _exchanged(question: str, old: str, new: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, question)


def _with_article(question: str) -> str:
    return question


def _is_capitalised(word: str) -> bool:
    return word[:1].isupper() and word.isalpha()
