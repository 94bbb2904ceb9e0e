"""Synthesis of tasks about a database, as a stream or as a given number of tasks.

The search repeats these steps: select the hardness level with the largest deficit, draw a template
by weight, draft a candidate, prove it, and yield it as a task. Tasks of other levels that are found
in the process are stored for later. A level is abandoned after `PATIENCE` drafts without a new
task. All choices depend only on the seed and the content of the file.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlgym.database.database import Database, QueryResult, open_database
from sqlgym.synthesis import english
from sqlgym.synthesis.canonical import canonical_sql
from sqlgym.synthesis.drafting import Candidate, Draft, Unfit, is_unclear
from sqlgym.synthesis.profiling import profile
from sqlgym.synthesis.proof import Rejected, for_proofs, prove
from sqlgym.synthesis.report import LEVELS, Synthesis, SynthesisReport, SynthTask
from sqlgym.synthesis.schema import World
from sqlgym.synthesis.templates import TEMPLATES
from sqlgym.tasks.hardness import Hardness, hardness
from sqlgym.tasks.splits import plain_question, skeleton
from toolgym.errors import ConfigurationError, ToolError

PATIENCE = 1_500
"""Number of drafts without a new task after which a level is given up."""
TRIES = 8
"""Number of drafts of one template before another one is drawn."""
WAITING = 40
"""Maximum number of tasks of a level that are stored for later."""
VARIANTS = 4
"""Default for the number of tasks that may differ only in their literals."""
COMMON = 0.04
"""Maximum share of the tasks that may have the same single value as their answer. Three such tasks
are always allowed.
"""
FAIR = 1.5
"""Multiple of a table's equal share of the questions above which candidates about it are
dropped.
"""
REFUSALS = 12
"""Number of consecutive failed proofs after which a template is given up for some tables, or for a
large table. A query that exceeds the budget counts as six failed proofs.
"""
_LITERAL = re.compile(r"(?:\"[^\"]*+\")++|(?:'[^']*+')++|(?<![\w.])\d++(?:\.\d++)?(?!\w)")


@dataclass
class Search:
    """The state of a search.

    Attributes:
        database: The file, with the limits of `for_proofs`.
        tried: Number of drafts by template.
        given: Number of tasks found, by template and level.
        asked: Number of questions by table.
        refused: Number of consecutive failed proofs by template and tables.
        levels: Hardness by SQL without literals.
        forms: Number of tasks found, by SQL without literals.
        skeletons: Number of tasks found, by canonical SQL without literals.
    """

    database: Database
    world: World
    mix: dict[Hardness, float]
    report: SynthesisReport
    rng: random.Random
    variants: int = VARIANTS
    tried: Counter[str] = field(default_factory=Counter)
    given: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    levels: dict[str, Hardness] = field(default_factory=dict)
    forms: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)
    canonicals: set[str] = field(default_factory=set)
    skeletons: Counter[str] = field(default_factory=Counter)
    questions: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    waiting: dict[Hardness, deque[SynthTask]] = field(
        default_factory=lambda: {level: deque() for level in LEVELS}
    )

    def tasks(self) -> Iterator[SynthTask]:
        """Yield all tasks that can be found, in the requested mix of levels until a level is
        exhausted.
        """
        while (level := self._next_level()) is not None:
            waiting = self.waiting[level]
            task = waiting.popleft() if waiting else self._find(level)
            if task is not None:
                self.report.kept += 1
                self.report.by_hardness[level] += 1
                self.report.by_template[task.template] += 1
                yield task
            if task is None or level in self.report.missing:
                kept = self.report.by_hardness[level]
                outcome = f"after {kept} tasks, no more were found" if kept else "none was found"
                self.report.missing[level] = f"{outcome} in {PATIENCE:,} drafts."

    def _next_level(self) -> Hardness | None:
        """Return the level with the largest deficit, or None if all are given up."""
        kept, total = self.report.by_hardness, self.report.kept + 1
        left = [lv for lv in self.mix if lv not in self.report.missing or self.waiting[lv]]
        return max(left, key=lambda lv: self.mix[lv] * total - kept[lv], default=None)

    def _find(self, level: Hardness) -> SynthTask | None:
        """Return a new task of a level, or None after `PATIENCE` drafts."""
        drafts = 0
        while drafts < PATIENCE:
            (name,) = self.rng.choices(list(TEMPLATES), self._weights(level))
            for _ in range(TRIES):
                drafts += 1
                task = self._attempt(name)
                if task is None:
                    continue
                if task.hardness == level:
                    return task
                self.waiting[task.hardness].append(task)
                break
        return None

    def _weights(self, level: Hardness) -> list[float]:
        """Return the weight of each template times its success rate for the level."""
        return [
            template.weight
            * (self.given[name][level] + 0.5)
            / (self.given[name].total() + 1 + self.tried[name] / (20 * TRIES))
            for name, template in TEMPLATES.items()
        ]

    def _attempt(self, name: str) -> SynthTask | None:
        """Return a task of a template if this draft is suitable."""
        self.report.candidates += 1
        self.tried[name] += 1
        try:
            candidate = TEMPLATES[name].draft(Draft(self.world, self.rng))
            question = english.sentence(candidate.question)
            return self._prove(name, replace(candidate, question=question))
        except Unfit:
            self.report.rejected["unfit"] += 1
        except Rejected as reason:
            self.report.rejected[reason.code] += 1
        return None

    def _prove(self, name: str, candidate: Candidate) -> SynthTask:
        """Return the task of a candidate if it is new and suitable. Cheap checks come first."""
        sql, tables = candidate.sql, candidate.tables
        entities = {entity.name: entity for entity in self.world.entities}
        largest = max(tables, key=lambda table: entities[table].rows)
        pair = name, (largest,) if entities[largest].is_large else tables
        if self.refused[pair] >= REFUSALS or is_unclear(candidate, self.world):
            raise Unfit
        if sql in self.seen:
            raise Rejected("asked_before")
        form = _LITERAL.sub(lambda match: match[0] if match[0][0] == '"' else "0", sql)
        level = self._level(form, sql)
        if level not in self.mix or len(self.waiting[level]) >= WAITING:
            raise Rejected("level_full")
        if self._is_full(tables):
            raise Rejected("table_full")
        self.seen.add(sql)
        if self.forms[form] >= self.variants:
            raise Rejected("skeleton_full")
        if plain_question(candidate.question) in self.questions:
            raise Rejected("same_question")
        try:
            answer = self._answer(prove(self.database, candidate, entities))
        except Rejected as reason:
            self.refused[pair] += 6 if reason.code == "gold_fails" else 1
            raise
        self.refused[pair] = 0
        canonical = canonical_sql(sql)
        if canonical in self.canonicals:
            raise Rejected("near_duplicate")
        if self.skeletons[skeleton(canonical)] >= self.variants:
            raise Rejected("skeleton_full")
        self.canonicals.add(canonical)
        self.skeletons[skeleton(canonical)] += 1
        self.forms[form] += 1
        self.answers[answer] += 1
        self.given[name][level] += 1
        self.asked.update(tables)
        self.questions.add(plain_question(candidate.question))
        return SynthTask(candidate.question, sql, level, name, tables, canonical)

    def _level(self, form: str, sql: str) -> Hardness:
        """Return the hardness of SQL, which does not depend on its literals."""
        if form not in self.levels:
            try:
                self.levels[form] = hardness(sql)
            except ValueError:
                raise Rejected("unparsed") from None
        return self.levels[form]

    def _is_full(self, tables: Sequence[str]) -> bool:
        """Return whether to skip tables; the probability grows with the excess over their share."""
        even = FAIR * self.asked.total() / len(self.world.entities)
        most = max(self.asked[table] for table in tables)
        return most > even > 3 and self.rng.random() > (even / most) ** 2

    def _answer(self, result: QueryResult) -> str:
        """Return the answer if it is a single value, else ""; raise `Rejected` if the answer is
        common.
        """
        rows = result.rows
        answer = str(rows[0][0]).casefold() if len(rows) == len(rows[0]) == 1 else ""
        if answer and self.answers[answer] >= max(3, COMMON * self.report.kept):
            raise Rejected("common_answer")
        return answer


def mix_of(hardness: Mapping[str, float] | None) -> dict[Hardness, float]:
    """Return the shares of the levels, scaled to a sum of one, without levels of share 0.

    Raises:
        ConfigurationError: A level is unknown, a share is negative or not finite, or all are 0.

    >>> mix_of({"easy": 3, "extra": 1})
    {'easy': 0.75, 'extra': 0.25}
    """
    if hardness is None:
        return {level: 1 / len(LEVELS) for level in LEVELS}
    unknown = [name for name in hardness if name not in LEVELS]
    if unknown:
        raise ConfigurationError(
            f"hardness: unknown level {unknown[0]!r}; the levels are {', '.join(LEVELS)}."
        )
    for level, share in hardness.items():
        if not math.isfinite(share) or share < 0:
            raise ConfigurationError(
                f"hardness: the share of {level} must be 0 or more, got {share}."
            )
    total = sum(hardness.values())
    if total <= 0:
        raise ConfigurationError("hardness: at least one share must be positive.")
    return {level: hardness[level] / total for level in LEVELS if hardness.get(level)}


def stream(
    database: str | Path | Database,
    *,
    seed: int = 0,
    hardness: Mapping[str, float] | None = None,
    tables: Sequence[str] | None = None,
    variants: int = VARIANTS,
    report: SynthesisReport | None = None,
) -> Iterator[SynthTask]:
    """Yield tasks about a database until no new ones are found.

    Args:
        database: An SQLite file, or an open `Database`.
        seed: Determines all choices. The same seed and file always produce the same tasks, on every
            machine.
        hardness: Shares of the hardness levels; None means equal shares.
        tables: Names of the tables to ask about; None means all except views.
        variants: Maximum number of tasks whose SQL differs only in its literals. For a small
            database, a larger number yields more tasks, but the tasks are more similar.
        report: The report to fill while the stream runs.

    Raises:
        ConfigurationError: No question about the database is possible, or an option is invalid.
        EnvironmentFault: The file cannot be read.
    """
    opened = database if isinstance(database, Database) else open_database(database)
    if variants < 1:
        raise ConfigurationError(f"variants must be at least 1, got {variants}.")
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
    return Search(for_proofs(opened), world, mix, report, rng, variants).tasks()


def synthesize(
    database: str | Path | Database,
    *,
    n: int = 500,
    seed: int = 0,
    hardness: Mapping[str, float] | None = None,
    tables: Sequence[str] | None = None,
    variants: int = VARIANTS,
    progress: Callable[[int, int], None] | None = None,
) -> Synthesis:
    """Return the first `n` tasks of `stream`, or fewer if there are no more.

    Args:
        database: An SQLite file, or an open `Database`.
        n: Number of tasks.
        seed: As for `stream`.
        hardness: As for `stream`.
        tables: As for `stream`.
        variants: As for `stream`.
        progress: Called after each task with the number of tasks so far and `n`.

    Raises:
        ConfigurationError: No question about the database is possible, or an option is invalid.
        EnvironmentFault: The file cannot be read.
    """
    if n < 1:
        raise ConfigurationError(f"n must be at least 1, got {n}.")
    report = SynthesisReport()
    found = stream(
        database, seed=seed, hardness=hardness, tables=tables, variants=variants, report=report
    )
    tasks: list[SynthTask] = []
    for task in itertools.islice(found, n):
        tasks.append(task)
        if progress is not None:
            progress(len(tasks), n)
    if not tasks:
        name = database.path if isinstance(database, Database) else database
        raise ConfigurationError(
            f"no suitable question was found about {name}: its tables are too small or too"
            " similar. Add rows, or write questions by hand."
        )
    return Synthesis(tuple(tasks), report)


def _world(database: Database, tables: Sequence[str] | None) -> World:
    if isinstance(tables, str):
        raise ConfigurationError(f"tables must be a list such as [{tables!r}], got {tables!r}.")
    try:
        world = profile(database, tables)
    except ToolError as error:  # a name in `tables` does not exist
        raise ConfigurationError(f"tables: {error.message} {error.hint}") from None
    if not world.entities:
        reasons = "; ".join(f"{name}: {why}" for name, why in sorted(world.left_out.items())[:5])
        raise ConfigurationError(
            f"no question is possible about {database.path}: it has no table with rows"
            f"{f' ({reasons})' if reasons else ''}."
        )
    return world
