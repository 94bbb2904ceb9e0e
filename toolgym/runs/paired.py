"""Two evaluations on the same tasks, compared task by task.

Tasks differ far more than two checkpoints do. Pairing takes that out: what counts is on how many
tasks one is right and the other wrong, so a difference can be told from chance with a fraction of
the tasks that two independent samples need. What is compared has to be the same tasks in the same
environment; a task that only one of the two played is counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from toolgym.errors import ConfigurationError
from toolgym.intervals import Effect, paired_difference, sign_test
from toolgym.records import EpisodeRecord
from toolgym.runs.episodes import is_evaluation, read_episodes
from toolgym.runs.run import EVALUATION, ITEMS, SAMPLED, Run


@dataclass(frozen=True)
class Paired:
    """The comparison of a second evaluation with a first.

    Attributes:
        tasks: Those that both played, and that were scored in both.
        tries: The most tries at a task of either.
        first: Accuracy of the first on them, the mean over tasks.
        second: That of the second.
        difference: The second's less the first's, with its paired 95 % interval
            (`toolgym.intervals.paired_difference`).
        chance: p-value of the exact sign test (McNemar's where each task has one try).
        gained: Tasks that the second does better.
        lost: Tasks that the first does better.
        unpaired: Tasks that one of the two has not, or has not scored.
    """

    tasks: int
    tries: int
    first: float
    second: float
    difference: Effect
    chance: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    unpaired: int

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        plain = asdict(self)
        del plain["difference"]
        ends = [self.difference.low, self.difference.high]
        return {**plain, "difference": self.difference.value, "interval": ends}


def paired(first: Iterable[EpisodeRecord], second: Iterable[EpisodeRecord]) -> Paired:
    """Compare two evaluations on the tasks that both have.

    Raises:
        ConfigurationError: They are of two environments, a task asks two different things, or no
            task was scored in both.
    """
    one, other = _by_task(first), _by_task(second)
    tasks = [task for task in one if task in other]
    for task in tasks:
        (one_asks, _), (other_asks, _) = one[task], other[task]
        if one_asks != other_asks:
            raise ConfigurationError(
                f"{task} is two different tasks, of {one_asks[0]} and {other_asks[0]}: compare"
                " evaluations of one environment on one data set."
            )
    tasks = [task for task in tasks if one[task][1] and other[task][1]]
    if not tasks:
        raise ConfigurationError(
            "no task was scored in both: evaluate both with the same --dataset, --split, --n and"
            " --seed."
        )
    pairs = {task: (fmean(one[task][1]), fmean(other[task][1])) for task in tasks}
    gained = tuple(task for task, (a, b) in pairs.items() if b > a)
    lost = tuple(task for task, (a, b) in pairs.items() if b < a)
    tries = [sorted(len(each[task][1]) for each in (one, other)) for task in tasks]
    before, after = zip(*pairs.values(), strict=True)
    return Paired(
        tasks=len(tasks),
        tries=max(most for _, most in tries),
        first=fmean(before),
        second=fmean(after),
        difference=paired_difference(before, after, sum(least for least, _ in tries)),
        chance=sign_test(len(gained), len(lost)),
        gained=gained,
        lost=lost,
        unpaired=len(one.keys() | other.keys()) - len(tasks),
    )


_Tries = tuple[tuple[str, str], list[float]]
"""What a task asks, in which environment; and of each scored try at it 1 if it was right."""


def _by_task(records: Iterable[EpisodeRecord]) -> dict[str, _Tries]:
    tasks: dict[str, _Tries] = {}
    for record in records:
        asks = (record.env_id, record.question)
        _, outcomes = tasks.setdefault(record.task_id, (asks, []))
        outcomes += [float(record.correct)] if record.scored else []
    return tasks


@dataclass(frozen=True)
class Compared:
    """Two evaluations that go together.

    Attributes:
        name: What was played, such as `unseen databases, after`.
        unseen: What the tasks were to the training of the two, in one sentence.
    """

    name: str
    unseen: str
    result: Paired


def compare_folders(first: Path, second: Path, env_id: str | None = None) -> list[Compared]:
    """Compare what two places hold: the final evaluations of two runs, or two of `toolgym eval`.

    Args:
        first: A run folder, or what `toolgym eval --out` wrote.
        second: Another; the same run folder again compares its evaluations before with those after.
        env_id: The environment that was played; None: any.

    Raises:
        ConfigurationError: There is nothing of the kind, or nothing that both have, or it was
            played in another environment.
    """
    is_one = first.resolve() == second.resolve() and _is_training(first)
    whens = ("before", "after") if is_one else ("after", "after")
    one, other = (
        _evaluations(path, when) for path, when in zip((first, second), whens, strict=True)
    )
    names = [suffix for suffix in one if suffix in other]
    for record in (r for side in (one, other) for each in side.values() for r in each.records[:1]):
        if env_id not in (None, record.env_id):
            raise ConfigurationError(f"these episodes are of {record.env_id}, not of {env_id}.")
    found = [
        Compared(
            _name(one[suffix], other[suffix], whens),
            _unseen(one[suffix].unseen, other[suffix].unseen),
            paired(one[suffix].records, other[suffix].records),
        )
        for suffix in names
    ]
    if not found:
        raise ConfigurationError(f"{first} and {second} have no evaluation in common.")
    return found


def _is_training(path: Path) -> bool:
    return path.is_dir() and not is_evaluation(Run.open(path).config)


@dataclass(frozen=True)
class _Played:
    records: list[EpisodeRecord]
    name: str
    unseen: tuple[str, ...] | None


def _evaluations(path: Path, when: str) -> dict[str, _Played]:
    """The evaluations of a place, by the suffix of their phases; one alone has none."""
    if path.is_file():
        return {"": _Played(read_episodes(path), path.name, None)}
    run = Run.open(path)
    if is_evaluation(run.config):
        return {"": _Played(read_episodes(path, EVALUATION), run.name, None)}
    told = dict(_by_suffix(run.summary.get("evaluations") or []))
    played = {suffix: read_episodes(path, f"{when}{suffix}") for suffix in ("", ITEMS, SAMPLED)}
    return {
        suffix: _Played(
            records,
            str(told.get(suffix, {}).get("name", when)),
            tuple(told[suffix].get("unseen") or ()) if suffix in told else None,
        )
        for suffix, records in played.items()
        if records
    }


def _by_suffix(evaluations: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The evaluations of a summary: the first, then the others by how they were played."""
    for place, each in enumerate(evaluations):
        yield SAMPLED if each.get("temperature") else ITEMS if place else "", each


def _name(one: _Played, other: _Played, whens: tuple[str, str]) -> str:
    named = list(dict.fromkeys((one.name, other.name)))
    return f"{' and '.join(named)}{', before and after' if whens[0] != whens[1] else ''}"


def _unseen(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> str:
    """What the tasks were to the training."""
    if one is None and other is None:
        return "What a training had seen of these tasks is not told by such files."
    return " ".join(_sides(one, other))


def _sides(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> Iterator[str]:
    if one == other:
        yield _said("Both trainings", one)
        return
    for who, kinds in (("The training of the first", one), ("That of the second", other)):
        yield _said(who, kinds) if kinds is not None else f"{who} is not told."


def _said(who: str, kinds: tuple[str, ...] | None) -> str:
    if not kinds:
        return f"{who} may have seen these tasks: nothing was held out."
    return f"{who} had seen none of these {' and none of their '.join(kinds)}."
