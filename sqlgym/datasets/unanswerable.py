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
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from rapidfuzz import fuzz
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlgym.database.database import open_database
from sqlgym.database.parsing import careful, parse
from sqlgym.database.schema import Column, Table
from sqlgym.database.sqlite_file import quoted
from sqlgym.datasets.absence import (
    PLACES,
    VAGUE,
    Source,
    alike,
    are_alike,
    are_same_things,
    could_have,
    entity_of,
    holds_numbers,
    kind_of,
    noun_of,
    place_of,
    stems,
    words_for,
)
from sqlgym.synthesis.language import lexicon
from sqlgym.synthesis.language.nouns import Noun, table_noun
from sqlgym.synthesis.reading.references import is_unique, table_words
from sqlgym.synthesis.reading.world import literal
from sqlgym.tasks.gold import gold_of
from sqlgym.tasks.task import SqlTask, UnanswerableTask
from toolgym.errors import ConfigurationError, TaskRefused, ToolError
from toolgym.lazy import lazy
from toolgym.tasks import TaskSet

Kind = Literal["value", "column", "table"]
KINDS: Final[tuple[Kind, ...]] = ("value", "column", "table")

NEAR: Final = 80.0
"""Similarity (0 to 100) from which a name may be another one, misspelt."""
_ASKING: Final = (
    r"(?:(?:What (?:is|are|was|were)|Give|List|Show|Name) the|\bhighest|\blowest|\btotal|\baverage)"
)
_UNFIT: Final = re.compile(r"[,(;]| in | round|\bWho\b")
"""A unit, a form of the answer or a person is named, which another column would not fit."""
_HEAD: Final = re.compile(
    r"[^\Waeiouyåäöøæáéíóúü]*[aeiouyåäöøæáéíóúü]+[^\Waeiouyåäöøæáéíóúü]", re.I
)
_TAIL: Final = re.compile(r"[^\Waeiouyåäöøæáéíóúü][aeiouyåäöøæáéíóúü]+[^\Waeiouyåäöøæáéíóúü]+$")
_SHORT: Final = 6
"""Letters of a made name that is too short to be taken for one."""
_WORDS: Final = 16
"""Of a question that is asked of another database: a long one speaks of too much else."""
_COMPARISONS: Final = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)
_OFFERED: Final = 40


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
        raise ConfigurationError(f"unanswerable must be a share from 0 to below 1, got {share!r}.")
    return tasks if share == 0 else _mixed(tasks, float(share), kinds)


@functools.lru_cache(maxsize=32)
def _mixed(tasks: TaskSet[SqlTask], share: float, kinds: tuple[Kind, ...]) -> TaskSet[SqlTask]:
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
        chosen = sorted(sorted(range(len(kept)), key=lambda i: place_of(kept[i].id))[:most])
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

    The kinds take turns, as long as they have any; the tasks are gone through in the order of a
    hash. So the first of them stay the same, however many are made.
    """
    maker = _Maker(tasks)
    streams = {kind: maker.of_kind(kind) for kind in kinds}
    made: dict[tuple[str, str], UnanswerableTask] = {}
    while streams and len(made) < most:
        for kind, stream in list(streams.items()):
            task = next(stream, None)
            if task is None:
                del streams[kind]
            elif len(made) < most:
                made.setdefault((task.item, task.question), task)
    return list(made.values())


class _Maker:
    """Makes unanswerable tasks from those of one set."""

    def __init__(self, tasks: TaskSet[SqlTask]) -> None:
        self._tasks = tasks
        self._trees: dict[str, exp.Expr] = {}
        self._donors: dict[tuple[str, str], list[_Found]] = {}
        self._names: dict[tuple[str, str, str], list[str]] = {}

    @lazy
    def _sources(self) -> dict[str, Source]:
        found: dict[str, Source] = {}
        for task in self._tasks:
            if task.item not in found and task.problem is None:
                found[task.item] = Source(task.item, task.database, open_database(task.database))
        return found

    @lazy
    def _order(self) -> list[SqlTask]:
        return sorted(self._tasks, key=lambda task: place_of(task.id))

    @lazy
    def _asked(self) -> frozenset[tuple[str, str]]:
        return frozenset((task.item, task.question) for task in self._tasks)

    def of_kind(self, kind: Kind) -> Iterator[UnanswerableTask]:
        """The unanswerable tasks of a kind, at most one made from each task."""
        make = {"value": self._value, "column": self._column, "table": self._table}[kind]
        for task in self._order:
            if task.problem is not None or self._tasks.refusal_of(task) is not None:
                continue
            try:
                if task.id not in self._trees:
                    self._trees[task.id] = parse(task.gold_sql)
                made = careful(functools.partial(make, task, self._trees[task.id]))
            except (SqlglotError, TaskRefused):
                continue
            if made is not None and (made.item, made.question) not in self._asked:
                yield made

    # A value -------------------------------------------------------------------------------------

    def _value(self, task: SqlTask, tree: exp.Expr) -> UnanswerableTask | None:
        """The question, or a plain one on the same table, with a name that no row has."""
        source = self._sources[task.item]
        for node in tree.find_all(exp.Literal):
            spot = _identified(source, node, tree)
            if spot is None or not _stands_once(node.this, task.question):
                continue
            if node.find_ancestor(exp.Select) is tree and len(gold_of(task).result.rows) != 1:
                continue
            name = self._absent_name(source, *spot, node.this)
            if name is not None and self._finds_nothing(source, task, node, name):
                return _without_value(task, *spot, name, _exchanged(task.question, node.this, name))
        row = _row_of(source, task, tree)
        if row is None:
            return None
        table, column, real = row
        asked = [
            each for each in table.columns if each != column and source.is_askable(table, each)
        ]
        name = self._absent_name(source, table, column, real) if asked else None
        if name is None:
            return None
        noun = noun_of(table, min(asked, key=lambda each: place_of(f"{task.id} {each.name}")))
        question = f"{_what(noun)} {noun.be} the {noun.one} of {_called(table, name)}?"
        return _without_value(task, table, column, name, question)

    def _absent_name(self, source: Source, table: Table, column: Column, value: str) -> str | None:
        own = source.values(table, column)
        lowered = [each.casefold() for each in own]
        for name in self._names_like(source, table, column, value, own):
            near = any(fuzz.ratio(name.casefold(), each) >= NEAR for each in lowered)
            if not near and source.lacks(name):
                return name
        return None

    def _names_like(
        self, source: Source, table: Table, column: Column, value: str, own: list[str]
    ) -> Iterator[str]:
        """Names of the same kind: of two real ones put together, or of another database."""
        is_person = kind_of(table) == "person"
        is_place = entity_of(table.name).last in PLACES and " " not in value
        for other in sorted(own, key=lambda each: place_of(f"{value} {each}"))[:_OFFERED]:
            if (
                is_person
                or is_place
                or (" " in value and value.split(" ")[0] == other.split(" ")[0])
            ):
                yield from _crossed(value, other)
        offered = self._names_elsewhere(source, table, column)
        size = value.count(" ")
        # A real name may have another spelling here: "DR Congo", or "Congo" with more around it.
        strange = (
            each
            for each in offered
            if each.count(" ") == size and not each.isupper() and _is_strange(source, each)
        )
        yield from sorted(strange, key=lambda each: place_of(f"{value} {each}"))[:_OFFERED]

    def _names_elsewhere(self, source: Source, table: Table, column: Column) -> list[str]:
        key = (source.item, table.name, column.name)
        if key not in self._names:
            self._names[key] = [
                name
                for other in self._sources.values()
                if other is not source
                for theirs in other.tables
                if kind_of(table) == kind_of(theirs) == "person" or are_same_things(table, theirs)
                for match in [theirs.column(column.name)]
                if match is not None
                for name in other.values(theirs, match)[:_OFFERED]
            ]
        return self._names[key]

    def _finds_nothing(self, source: Source, task: SqlTask, node: exp.Literal, name: str) -> bool:
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
        """The question, or a plain one on its row, with a column of another database's tables."""
        source = self._sources[task.item]
        projected = _projected(source, tree)
        if projected is not None:
            table, column = projected
            noun = noun_of(table, column)
            phrase = _phrase(noun, task.question)
            if phrase is not None:
                for found in self._columns_like(source, table, holds_numbers(column), task.id):
                    new = noun_of(found[1], found[2])
                    said = new.one if phrase == noun.one else new.many
                    question = _exchanged(task.question, phrase, said)
                    return _without_column(task, source, found, question)
        row = _row_of(source, task, tree)
        if row is None:
            return None
        table, _, name = row
        for found in self._columns_like(source, table, None, task.id):
            new = noun_of(found[1], found[2])
            question = f"{_what(new)} {new.be} the {new.one} of {_called(table, name)}?"
            return _without_column(task, source, found, question)
        return None

    def _columns_like(
        self, source: Source, table: Table, is_number: bool | None, salt: str
    ) -> Iterator[_Found]:
        """Columns that tables of this kind have elsewhere, and that this database lacks."""
        key = (source.item, table.name)
        if key not in self._donors:
            self._donors[key] = [
                (other, theirs, each)
                for other in self._sources.values()
                if other is not source
                for theirs in other.tables
                if are_alike(table, theirs)
                for each in theirs.columns
                if other.is_askable(theirs, each)
                and could_have(table, theirs, each)
                and not alike(words_for(theirs, each)) & source.words
                and source.lacks(noun_of(theirs, each).one)
            ]
        offered = (one for one in self._donors[key] if is_number in (None, holds_numbers(one[2])))
        yield from sorted(offered, key=lambda one: place_of(f"{salt} {one[2].name}"))

    # A table -------------------------------------------------------------------------------------

    def _table(self, task: SqlTask, tree: exp.Expr) -> UnanswerableTask | None:
        """The question asked of another database, which has nothing of the kind."""
        home = self._sources[task.item]
        named = {each.name.lower() for each in tree.find_all(exp.Table)}
        tables = [table for table in home.tables if table.name.lower() in named]
        asked = [table for table in tables if _asks_of(table, task.question)]
        names = {each.name.lower() for each in tree.find_all(exp.Column)}
        if not asked or len(task.question.split()) > _WORDS or tree.find(exp.Count, exp.Sum):
            return None  # of what is not there one might count none
        for target in self._targets(home):
            for table in asked:
                missing = frozenset(table_words(table.name)[-1:])
                if missing & VAGUE or alike(missing) & target.words:
                    continue
                keys = {key.column.lower() for key in table.foreign_keys}
                used = [c.name for c in table.columns if c.name.lower() in names - keys]
                if not target.tempts(table, list(filter(None, map(stems, used)))):
                    continue
                noun = entity_of(table.name)
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

    def _targets(self, home: Source) -> list[Source]:
        """The other databases, those first that have most of the same names of columns."""
        others = [other for other in self._sources.values() if other is not home]
        return sorted(
            others,
            key=lambda other: (
                -len(other.column_stems & home.column_stems),
                place_of(f"{home.item} {other.item}"),
            ),
        )


_Found = tuple[Source, Table, Column]


def _without_value(
    task: SqlTask, table: Table, column: Column, name: str, question: str
) -> UnanswerableTask:
    why = (
        f"No row of {table.name} has {name!r} in {column.name}, and the words are in no row of any"
        " table."
    )
    search = f"SELECT * FROM {quoted(table.name)} WHERE {quoted(column.name)} = {literal(name)}"
    return replace(_task(task, "value", name, why, question), search=search)


def _what(noun: Noun) -> str:
    return "Who" if noun.last in lexicon.PERSONS else "What"


def _called(table: Table, name: str) -> str:
    """A row in a sentence, by its name."""
    return name if kind_of(table) == "person" else f"the {entity_of(table.name).one} {name}"


def _without_column(
    task: SqlTask, source: Source, found: _Found, question: str
) -> UnanswerableTask:
    other, theirs, missing = found
    name = noun_of(theirs, missing).one
    why = (
        f"No column of {source.item} is the {name}, or has a word for it; the column"
        f" {theirs.name}.{missing.name} is of {other.item}."
    )
    return _task(task, "column", name, why, question)


def _task(task: SqlTask, missing: Kind, name: str, because: str, question: str) -> UnanswerableTask:
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


def _identified(source: Source, node: exp.Literal, tree: exp.Expr) -> tuple[Table, Column] | None:
    """The table and the column of which a text picks the one row that the query needs."""
    equal = node.parent
    if not node.is_string or not isinstance(equal, exp.EQ) or len(node.this) < 3:
        return None
    side = equal.left if equal.right is node else equal.right
    select = equal.find_ancestor(exp.Select)
    if not isinstance(side, exp.Column) or select is None or not _is_plain(source, select, tree):
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


def _is_plain(source: Source, select: exp.Select, tree: exp.Expr) -> bool:
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
    if not isinstance(above, exp.Subquery) or not isinstance(above.parent, _COMPARISONS):
        return False
    keys = [each for each in select.expressions if isinstance(each, exp.Column)]
    if isinstance(above.parent, exp.EQ) and len(keys) == 1:
        tables = list(select.find_all(exp.Table))
        own = source.database.schema.get(tables[0].name) if len(tables) == 1 else None
        key = own.column(keys[0].name) if own is not None else None
        if key is None or key.primary_key:
            return False  # only who refers to it is asked for, and that may be nobody
    return above.find_ancestor(exp.Select) is tree and not any(
        each.find(exp.AggFunc) for each in tree.expressions
    )


def _column_of(
    source: Source, column: exp.Column, select: exp.Select
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


def _row_of(source: Source, task: SqlTask, tree: exp.Expr) -> tuple[Table, Column, str] | None:
    """A row that a task names, in its question or its answer: its table, its name and in what."""
    for node in tree.find_all(exp.Literal):
        spot = _identified(source, node, tree)
        if spot is not None and _is_name(node.this):
            return *spot, node.this
    if not isinstance(tree, exp.Select) or not isinstance(tree.expressions[0], exp.Column):
        return None
    spot = _column_of(source, tree.expressions[0], tree)
    if spot is None or not is_unique(source.database, spot[0], spot[1].name):
        return None
    names = [row[0] for row in gold_of(task).result.rows]
    names = [each for each in names if isinstance(each, str) and _is_name(each)]
    if not names or not table_noun(spot[0].name).is_readable:
        return None
    return *spot, min(names, key=lambda each: place_of(f"{task.id} {each}"))


def _projected(source: Source, tree: exp.Expr) -> tuple[Table, Column] | None:
    """The one column that is asked for, plain or in an aggregate, if all else goes without it."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    columns = list(tree.expressions[0].find_all(exp.Column))
    if len(columns) != 1 or tree.expressions[0].find(exp.Count, exp.Query, exp.Binary):
        return None
    name = columns[0].name.lower()
    others = [each for each in tree.find_all(exp.Column) if each.name.lower() == name]
    return _column_of(source, columns[0], tree) if len(others) == 1 else None


# Words -------------------------------------------------------------------------------------------


def _phrase(noun: Noun, question: str) -> str | None:
    """The noun as the question has it: once, and as what is asked for."""
    if not noun.is_readable or _UNFIT.search(question):
        return None
    for text in (noun.one, noun.many):
        if re.search(rf"{_ASKING} {re.escape(text)}\b", question):
            return text if _stands_once(text, question) else None
    return None


def _asks_of(table: Table, question: str) -> bool:
    noun = entity_of(table.name)
    lowered = question.lower()
    return noun.is_readable and any(
        re.search(rf"\b{re.escape(text)}\b", lowered) for text in (noun.one, noun.many)
    )


def _stands_once(text: str, question: str) -> bool:
    return len(re.findall(rf"(?<!\w){re.escape(text)}(?!\w)", question)) == 1


def _exchanged(question: str, old: str, new: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, question)


def _crossed(name: str, other: str) -> Iterator[str]:
    """Names with the beginning of one name and the end of another.

    >>> list(_crossed("Milan Okafor", "Eva Maier")), list(_crossed("Steinbock", "Gletscherblick"))
    (['Milan Maier'], ['Steinlick'])
    """
    words, others = name.split(" "), other.split(" ")
    if len(words) != len(others) or not (
        _is_capitalised(words[-1]) and _is_capitalised(others[-1])
    ):
        return
    if len(words) > 1:
        if words[-1] != others[-1] and min(len(words[-1]), len(others[-1])) > 2:
            yield " ".join([*words[:-1], others[-1]])
        return
    head, tail = _HEAD.match(name), _TAIL.search(other)
    if head and tail and tail[0].islower() and len(head[0] + tail[0]) > _SHORT:
        yield head[0] + tail[0]


def _is_strange(source: Source, name: str) -> bool:
    """None of the longer words of a name is in any row."""
    return all(source.lacks(word) for word in re.findall(r"\w{4,}", name))


def _is_name(text: str) -> bool:
    """Some capitalised words."""
    return all(map(_is_capitalised, text.split(" ")))


def _is_capitalised(word: str) -> bool:
    return word[:1].isupper() and word.isalpha()
