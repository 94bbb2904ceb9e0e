"""Tasks about a database: as a stream, or so many at once.

Everything is decided by the seed and by what the file holds: no clock, no order of a hash.

The search drafts, measures, proves and keeps until enough of each hardness are found. The level
that lacks most is looked for next. Which shape is tried for it is drawn by how often the shape has
given that level so far, and more seldom the more tasks of it are kept, so that all shapes that work
get their share. What turns out to be of another level waits for its turn. A level of which nothing
new is found for `PATIENCE` drafts is given up, and the others go on.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.synthesis import english
from sqlgym.synthesis.beside import Begun, Threads
from sqlgym.synthesis.canonical import canonical_sql
from sqlgym.synthesis.drafting import Candidate, Draft, Unfit, is_unclear
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.proof import Rejected, first_look, prove_on_file
from sqlgym.synthesis.rephrasing import LITERAL, Rephraser, solved_by_expert
from sqlgym.synthesis.report import LEVELS, Synthesis, SynthesisReport, SynthTask
from sqlgym.synthesis.schema import World
from sqlgym.synthesis.small_copy import SmallCopy, small_copy
from sqlgym.synthesis.templates import TEMPLATES
from sqlgym.tasks.hardness import Hardness, hardness
from sqlgym.tasks.splits import plain_question, skeleton
from toolgym.errors import ConfigurationError, ToolError

PATIENCE = 1_500
"""Drafts without a new task of a level after which the level is given up."""
WAITING = 40
"""Tasks of a level that may wait for their turn."""
VARIANTS = 4
"""Kept tasks that may differ in their literals only, unless another number is asked for."""
COMMON = 0.04
"""Share of the kept tasks that may have the same single value as their answer; three always may."""
ODD = 0.003
"""How often a draft may speak of what nobody would say, such as a column with a cryptic name."""
FAIR = 1.5
"""How many times its share of the shapes that fit, at most, a table has of the questions; more only
after half of `PATIENCE` without a new task."""
HOPELESS = {"gold_fails": 4, "too_long": 1}
"""What counts, and how much, against trying a shape on the same tables again; at 8 it is given up
until something else of it is kept."""
HOPELESS_WHERE_LARGE = {**HOPELESS, "several_readings": 1, "tied_limit": 1}
"""The same for a database with a large table, where many rows tie, and each draft costs more."""
AHEAD = 8
"""Tasks by which the search is ahead of what it gives, where proofs are done beside it."""


@dataclass(frozen=True)
class Found:
    """A task that was found.

    Attributes:
        form: Its canonical SQL without literals.
        proof: Its proof on the file, where that is still under way.
        drafts: How many were tried for it in vain.
    """

    task: SynthTask
    form: str
    proof: Begun[QueryResult] | None = None
    drafts: int = 0


@dataclass
class Search:
    """One search, with what it has learned of the shapes so far."""

    database: Database
    world: World
    mix: dict[Hardness, float]
    report: SynthesisReport
    rng: random.Random
    rephraser: Rephraser | None = None
    variants: int = VARIANTS
    small: SmallCopy | None = None
    beside: Threads | None = None
    tried: Counter[str] = field(default_factory=Counter)
    fits: Counter[str] = field(default_factory=Counter)
    gave: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    kept_shapes: Counter[str] = field(default_factory=Counter)
    seen_sql: set[str] = field(default_factory=set)
    seen_canonical: set[str] = field(default_factory=set)
    skeletons: Counter[str] = field(default_factory=Counter)
    questions: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    heavy: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    levels: dict[str, Hardness] = field(default_factory=dict)
    chosen: Counter[Hardness] = field(default_factory=Counter)
    in_vain: Counter[Hardness] = field(default_factory=Counter)
    waiting: dict[Hardness, deque[Found]] = field(
        default_factory=lambda: {level: deque() for level in LEVELS}
    )
    given_up: set[Hardness] = field(default_factory=set)
    shapes_of: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    asked: Counter[str] = field(default_factory=Counter)
    is_patient: bool = False

    def tasks(self) -> Iterator[SynthTask]:
        """All tasks that can be found, in the mix of levels as long as it can be had."""
        ahead = AHEAD if self.beside is not None else 0
        chosen: deque[Found] = deque()
        while True:
            level = self._next_level()
            if level is None:
                break
            found = self.waiting[level].popleft() if self.waiting[level] else self._find(level)
            if found is None:
                self._give_up(level)
                continue
            self.chosen[level] += 1
            if level in self.given_up:  # found by chance, on the way to another level
                self._give_up(level)
            chosen.append(found)
            if len(chosen) > ahead:
                yield from self._proved(chosen.popleft())
        while chosen:
            yield from self._proved(chosen.popleft())

    def _proved(self, found: Found) -> Iterator[SynthTask]:
        """A task, unless its proof on the file has failed."""
        task = found.task
        try:
            if found.proof is not None:
                self._count(task, self._answer(found.proof.result()))
        except Rejected as reason:
            self._take_back(found, reason.code)
            return
        self.in_vain[task.hardness] = 0
        if self.rephraser is not None:
            task = self.rephraser.reword(task)
            self.questions.add(plain_question(task.question))
        self.report.kept += 1
        self.report.by_hardness[task.hardness] += 1
        self.report.by_shape[task.shape] += 1
        yield task

    def _take_back(self, found: Found, code: str) -> None:
        """Go on as if a task had not been found."""
        task = found.task
        self.chosen[task.hardness] -= 1
        self.kept_shapes[task.shape] -= 1
        self.gave[task.shape][task.hardness] -= 1
        self.asked.subtract(task.tables)
        self.questions.discard(plain_question(task.question))
        self.seen_canonical.discard(task.canonical)
        self.skeletons[found.form] -= 1
        self.in_vain[task.hardness] += found.drafts + 1
        self._refuse(task.shape, task.tables, code)
        self.report.rejected[code] += 1
        if task.hardness in self.given_up:
            self._give_up(task.hardness)

    def _next_level(self) -> Hardness | None:
        """The level that lacks most."""
        kept = self.chosen
        total = sum(kept.values()) + 1
        open_ = [
            level
            for level in LEVELS
            if self.mix.get(level) and (level not in self.given_up or self.waiting[level])
        ]
        return max(open_, key=lambda level: self.mix[level] * total - kept[level], default=None)

    def _give_up(self, level: Hardness) -> None:
        self.given_up.add(level)
        kept = self.chosen[level]
        outcome = f"after {kept} tasks, no more were found" if kept else "none was found"
        self.report.missing[level] = f"{outcome} in {PATIENCE:,} drafts: {self._lacks(level)}"

    def _lacks(self, level: Hardness) -> str:
        if not self.fits[level]:
            return "no shape of this level fits the tables, their columns and their references."
        return "new drafts of this level repeat earlier questions or cannot be verified."

    def _find(self, level: Hardness) -> Found | None:
        names = list(TEMPLATES)
        weights = [self._weight(name, level) for name in names]
        for drafts in range(self.in_vain[level], PATIENCE):
            self.is_patient = drafts >= PATIENCE // 2
            place = self.rng.choices(range(len(names)), weights)[0]
            name = names[place]
            self.report.candidates += 1
            self.tried[name] += 1
            try:
                found = self._attempt(name)
            except Unfit:
                self.report.rejected["unfit"] += 1
            except Rejected as reason:
                self.report.rejected[reason.code] += 1
            else:
                task = found.task
                self.kept_shapes[task.shape] += 1
                self.asked.update(task.tables)
                self.gave[task.shape][task.hardness] += 1
                self.questions.add(plain_question(task.question))
                if task.hardness == level:
                    return replace(found, drafts=drafts - self.in_vain[level])
                self.waiting[task.hardness].append(found)
            weights[place] = self._weight(name, level)  # a draft changes that of its shape only
        return None

    def _weight(self, name: str, level: Hardness) -> float:
        """How promising a shape is: its yield of the level, less what it has given already."""
        gained = (self.gave[name][level] + 0.5) / (self.tried[name] + 2)
        return gained / (1 + self.kept_shapes[name] / TEMPLATES[name].weight)

    def _attempt(self, name: str) -> Found:
        is_plain = self.rng.random() >= ODD and not self.is_patient
        draft = Draft(self.world.plain if is_plain else self.world, self.rng)
        candidate = TEMPLATES[name].draft(draft)
        if self.heavy[name, candidate.tables] >= 8 or is_unclear(candidate, self.world):
            raise Unfit
        if candidate.sql in self.seen_sql:
            raise Rejected("asked_before")
        self.seen_sql.add(candidate.sql)
        level = self._level(candidate.sql)
        self.fits[level] += 1
        if not self.mix.get(level) or len(self.waiting[level]) >= WAITING:
            self.seen_sql.discard(candidate.sql)  # its turn may come
            raise Rejected("level_full")
        if self._is_full(name, candidate.tables):
            self.seen_sql.discard(candidate.sql)
            raise Rejected("table_full")
        question = english.sentence(english.one_number_style(candidate.question))
        candidate = replace(candidate, shape=name, question=question)
        entities = {entity.name: entity for entity in self.world.entities}
        # Of a large table a proof costs more than to see whether it is worth it.
        forms = self._forms(candidate) if self.small is not None else None
        try:
            shown = first_look(candidate, entities, self.small)
            if shown is not None and self.beside is not None:
                work = partial(prove_on_file, self.database, candidate, entities, shown)
                task, form = self._distinct(candidate, level, forms)
                return Found(task, form, self.beside.begin(work))
            answer = self._answer(prove_on_file(self.database, candidate, entities, shown))
        except Rejected as reason:
            self._refuse(name, candidate.tables, reason.code)
            raise
        task, form = self._distinct(candidate, level, forms)
        self._count(task, answer)
        return Found(task, form)

    def _answer(self, result: QueryResult) -> str:
        """A single value that is the answer, if not too many have it; else an empty text."""
        rows = result.rows
        answer = str(rows[0][0]).casefold() if len(rows) == len(rows[0]) == 1 else ""
        if answer and self.answers[answer] >= max(3, COMMON * self.report.kept):
            raise Rejected("common_answer")
        return answer

    def _count(self, task: SynthTask, answer: str) -> None:
        """Learn from a task that is proved."""
        self.answers[answer] += 1
        self.heavy[task.shape, task.tables] = 0

    def _refuse(self, name: str, tables: tuple[str, ...], code: str) -> None:
        """Learn from a refusal."""
        weights = HOPELESS if self.small is None else HOPELESS_WHERE_LARGE
        self.heavy[name, tables] += weights.get(code, 0)

    def _is_full(self, name: str, tables: tuple[str, ...]) -> bool:
        """Whether tables are asked about more than the number of shapes that fit them explains."""
        for table in tables:
            self.shapes_of[table].add(name)
        total, shapes = self.asked.total(), sum(map(len, self.shapes_of.values()))
        if total < 20 or self.is_patient:
            return False
        return any(
            self.asked[table] * shapes > FAIR * len(self.shapes_of[table]) * total
            for table in tables
        )

    def _level(self, sql: str) -> Hardness:
        """The hardness of SQL, which its literals do not change."""
        form = LITERAL.sub(lambda m: m[0] if m[0][0] == '"' else "0", sql)
        if form not in self.levels:
            try:
                self.levels[form] = hardness(sql)
            except ValueError:
                raise Rejected("unparsed") from None
        return self.levels[form]

    def _forms(self, candidate: Candidate) -> tuple[str, str]:
        """Its SQL in canonical form, with literals and without, if no kept task is too like it."""
        try:
            canonical = canonical_sql(candidate.sql)
        except ValueError:
            raise Rejected("unparsed") from None
        if canonical in self.seen_canonical:
            raise Rejected("near_duplicate")
        form = skeleton(canonical)
        if self.skeletons[form] >= self.variants:
            raise Rejected("skeleton_full")
        if self.is_taken(candidate.question):
            raise Rejected("same_question")
        return canonical, form

    def _distinct(
        self, candidate: Candidate, level: Hardness, forms: tuple[str, str] | None
    ) -> tuple[SynthTask, str]:
        """The task of a candidate, and the form that too many may not have."""
        canonical, form = forms or self._forms(candidate)
        self.seen_canonical.add(canonical)
        self.skeletons[form] += 1
        task = SynthTask(
            candidate.question,
            candidate.sql,
            level,
            candidate.shape,
            candidate.tables,
            canonical,
        )
        return task, form

    def is_taken(self, question: str) -> bool:
        """Whether a task has this question already."""
        return plain_question(question) in self.questions


WORDINGS = ("en",)
"""Languages in which questions are written."""


def mix_of(hardness: Mapping[str, float] | None) -> dict[Hardness, float]:
    """Shares of the levels that sum to one; those given are only compared with each other.

    Args:
        hardness: Share by level; a level that is not named is left out. None for evenly.

    Raises:
        ConfigurationError: A level is unknown, a share is no number from 0 on, or all are 0.

    >>> mix_of({"easy": 3, "extra": 1})
    {'easy': 0.75, 'extra': 0.25}
    """
    if hardness is None:
        return {level: 1 / len(LEVELS) for level in LEVELS}
    unknown = [name for name in hardness if name not in LEVELS]
    if unknown:
        raise ConfigurationError(
            f"hardness: there is no level {unknown[0]!r}; the levels are {', '.join(LEVELS)}."
        )
    for level, share in hardness.items():
        if not math.isfinite(share) or share < 0:
            raise ConfigurationError(f"hardness: the share of {level} is {share}; give 0 or more.")
    total = sum(hardness.values())
    if total <= 0:
        raise ConfigurationError("hardness: all shares are 0; give one level at least a share.")
    return {level: hardness[level] / total for level in LEVELS if hardness.get(level)}


def stream(
    database: str | Path | Database,
    *,
    seed: int = 0,
    hardness: Mapping[str, float] | None = None,
    tables: Sequence[str] | None = None,
    variants: int = VARIANTS,
    wording: str = "en",
    rephrase: Callable[[str, str], str] | None = None,
    report: SynthesisReport | None = None,
) -> Iterator[SynthTask]:
    """Tasks about a database, one after the other, until nothing new is found for long.

    Args:
        database: An SQLite file, or an open `Database`.
        seed: Decides all choices; one seed gives the same tasks for the same file everywhere.
        hardness: How the levels are mixed, as shares; evenly if None.
        tables: The names of the tables to ask about; all but views if None.
        variants: Tasks whose SQL may differ in its literals only. More of them give more tasks
            where a database is small, and tasks that are more alike.
        wording: The language of the questions; "en" is the only one so far.
        rephrase: Gets question and SQL and gives another wording; see `Rephraser` for what is
            checked before it is kept.
        report: Filled while the stream runs.

    Raises:
        ConfigurationError: Nothing sensible can be asked, or an option is wrong.
        EnvironmentFault: The file cannot be read.
    """
    opened = database if isinstance(database, Database) else open_database(database)
    if wording not in WORDINGS:
        raise ConfigurationError(
            f"there is no wording {wording!r}: questions are written in {', '.join(WORDINGS)}."
        )
    if variants < 1:
        raise ConfigurationError(f"variants={variants}: give 1 or more.")
    mix = mix_of(hardness)
    world = _world(opened, tables)
    report = report if report is not None else SynthesisReport()
    report.tables_left_out.update(world.left_out)
    report.references += [
        f"{link.child.name}.{link.column} -> {link.parent.name}.{link.target}"
        for link in world.links
        if link.is_inferred
    ]
    rng = random.Random(f"synthesis-{seed}")
    search = Search(opened, world, mix, report, rng, variants=variants)
    if rephrase is not None:
        search.rephraser = Rephraser(opened, rephrase, report, search.is_taken, solved_by_expert)
    return _on_copies(search, tables)


def _on_copies(search: Search, tables: Sequence[str] | None) -> Iterator[SynthTask]:
    """The tasks of a search, which has a small copy of a large database meanwhile."""
    search.small = small_copy(search.database, search.world)
    if search.small is None:
        yield from search.tasks()
        return
    search.beside = Threads()
    try:
        search.world = profile(search.database, tables, search.small.database)
        yield from search.tasks()
    finally:
        search.beside.close()
        search.small.close()


def synthesize(
    database: str | Path | Database,
    *,
    n: int = 500,
    seed: int = 0,
    hardness: Mapping[str, float] | None = None,
    tables: Sequence[str] | None = None,
    variants: int = VARIANTS,
    wording: str = "en",
    rephrase: Callable[[str, str], str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Synthesis:
    """The first `n` tasks of `stream`, or fewer where there are no more.

    What is not told here is an argument as of `stream`.

    Args:
        database: An SQLite file, or an open `Database`.
        n: How many tasks.
        progress: Told after each task how many there are, and `n`.

    Raises:
        ConfigurationError: Nothing sensible can be asked, or an option is wrong.
        EnvironmentFault: The file cannot be read.
    """
    if n < 1:
        raise ConfigurationError(f"n={n}: ask for at least one task.")
    report = SynthesisReport()
    found = stream(
        database,
        seed=seed,
        hardness=hardness,
        tables=tables,
        variants=variants,
        wording=wording,
        rephrase=rephrase,
        report=report,
    )
    tasks: list[SynthTask] = []
    for task in itertools.islice(found, n):
        tasks.append(task)
        if progress is not None:
            progress(len(tasks), n)
    if not tasks:
        name = database.path if isinstance(database, Database) else database
        raise ConfigurationError(
            f"no sensible question was found about {name}: its tables are too small or too much"
            " alike. Add rows, or write questions by hand."
        )
    return Synthesis(tuple(tasks), report)


def _world(database: Database, tables: Sequence[str] | None) -> World:
    if isinstance(tables, str):
        raise ConfigurationError(f"tables={tables!r} is one text: give a list, [{tables!r}].")
    try:
        world = profile(database, tables)
    except ToolError as error:  # a name in `tables` that does not exist
        raise ConfigurationError(f"tables: {error.message} {error.hint}") from None
    if not world.entities:
        reasons = "; ".join(f"{name}: {why}" for name, why in sorted(world.left_out.items())[:5])
        raise ConfigurationError(
            f"nothing can be asked about {database.path}: it has no table with rows"
            f"{f' ({reasons})' if reasons else ''}."
        )
    return world
