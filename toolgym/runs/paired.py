"""Paired comparison of two evaluations on the same tasks.

Accuracy usually varies more between tasks than between two checkpoints. A paired comparison removes
the differences between tasks by counting the tasks on which one evaluation is correct and the other
is not. A paired comparison therefore needs far fewer tasks than a comparison of independent
samples. Tasks that only one evaluation contains are counted but not compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from toolgym.errors import ConfigurationError
from toolgym.intervals import Effect, paired_difference, sign_test
from toolgym.records import EpisodeRecord
from toolgym.runs.episodes import is_evaluation, read_episodes, setting_of
from toolgym.runs.run import ITEMS, SAMPLED, Run


@dataclass(frozen=True)
class Paired:
    """The comparison of a second evaluation with a first one.

    Attributes:
        env_id: The environment of both evaluations.
        tasks: Number of tasks that were scored in both evaluations.
        tries: Maximum number of attempts at a task in either evaluation.
        first: Accuracy of the first evaluation, as the mean over these tasks.
        second: Accuracy of the second evaluation.
        difference: `second` minus `first`, with its paired 95 % interval
            (`toolgym.intervals.paired_difference`).
        chance: p-value of the exact sign test (McNemar's test if each task has one attempt).
        gained: Ids of the tasks on which the second evaluation is better.
        lost: Ids of the tasks on which the first evaluation is better.
        unpaired: Number of tasks that were not scored in both evaluations.
    """

    env_id: str
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
        """Return the comparison as plain data."""
        plain = asdict(self)
        del plain["difference"]
        ends = [self.difference.low, self.difference.high]
        return {**plain, "difference": self.difference.value, "interval": ends}


def paired(first: Iterable[EpisodeRecord], second: Iterable[EpisodeRecord]) -> Paired:
    """Compare two evaluations on the tasks that they have in common.

    Raises:
        ConfigurationError: A task has different environments or questions in the two evaluations,
            or no task was scored in both.
    """
    one, other = _by_task(first), _by_task(second)
    for task in one.keys() & other.keys():
        (content, _), (other_content, _) = one[task], other[task]
        if content != other_content:
            raise ConfigurationError(
                f"{task} names different tasks of {content[0]} and {other_content[0]}: compare"
                " evaluations of one environment on one data set."
            )
    pairs = {task: (one[task][1], other[task][1]) for task in one if task in other}
    pairs = {task: tries for task, tries in pairs.items() if all(tries)}
    if not pairs:
        raise ConfigurationError(
            "no task was scored in both: evaluate both with the same --dataset, --split, --n and"
            " --seed."
        )
    means = {task: (fmean(a), fmean(b)) for task, (a, b) in pairs.items()}
    before, after = zip(*means.values(), strict=True)
    gained = tuple(task for task, (a, b) in means.items() if b > a)
    lost = tuple(task for task, (a, b) in means.items() if b < a)
    return Paired(
        env_id=next(one[task][0][0] for task in pairs),
        tasks=len(pairs),
        tries=max(len(tries) for both in pairs.values() for tries in both),
        first=fmean(before),
        second=fmean(after),
        difference=paired_difference(
            before, after, sum(min(len(a), len(b)) for a, b in pairs.values())
        ),
        chance=sign_test(len(gained), len(lost)),
        gained=gained,
        lost=lost,
        unpaired=len(one.keys() | other.keys()) - len(pairs),
    )


def _by_task(
    records: Iterable[EpisodeRecord],
) -> dict[str, tuple[tuple[str, str], list[float]]]:
    """Return the environment, the question, and 1 or 0 for each scored attempt, by task id."""
    tasks: dict[str, tuple[tuple[str, str], list[float]]] = {}
    for record in records:
        content = (record.env_id, record.question)
        _, outcomes = tasks.setdefault(record.task_id, (content, []))
        outcomes += [float(record.correct)] if record.scored else []
    return tasks


@dataclass(frozen=True)
class Compared:
    """The comparison of two evaluations on the same kind of tasks.

    Attributes:
        name: The name of the evaluations, such as `unseen databases`.
        about: A description of each evaluation: policy, data set, split, and the kinds of tasks
            held out from training.
        result: The comparison.
    """

    name: str
    about: tuple[str, str]
    result: Paired


def compare_folders(first: Path, second: Path) -> list[Compared]:
    """Compare the evaluations in two folders or files.

    Args:
        first: A folder or file of `toolgym eval --out`, or the folder of a training run, whose
            final evaluations are used.
        second: Another such folder or file. If both are the same run folder, the evaluations before
            and after training are compared.

    Raises:
        ConfigurationError: The two folders or files have no evaluation in common, for example
            because a training run is incomplete.
    """
    is_one = first.resolve() == second.resolve()
    one, other = _evaluations(first, "before" if is_one else "after"), _evaluations(second, "after")
    found = [
        Compared(
            " and ".join(dict.fromkeys((one[suffix].name, other[suffix].name))),
            (one[suffix].about, other[suffix].about),
            paired(one[suffix].records, other[suffix].records),
        )
        for suffix in one
        if suffix in other
    ]
    if not found:
        raise ConfigurationError(f"{first} and {second} have no evaluation in common.")
    return found


@dataclass(frozen=True)
class _Evaluation:
    records: list[EpisodeRecord]
    name: str
    about: str


def _evaluations(path: Path, when: str) -> dict[str, _Evaluation]:
    """Return the evaluations in a folder or file by the suffix of their phases ("" if there is only
    one).
    """
    facts = [f"{name} {value}" for name, value in setting_of(path).items() if value is not None]
    about = ", ".join(facts) or "not recorded in the file"
    if path.is_file() or is_evaluation(Run.open(path).config):
        return {"": _Evaluation(read_episodes(path), path.resolve().name, about)}
    run, named = Run.open(path), dict[str, Any]()
    for place, each in enumerate(run.evaluations):
        named[SAMPLED if each.get("temperature") else ITEMS if place else ""] = each
    played = {}
    for suffix in ("", ITEMS, SAMPLED):
        if records := read_episodes(path, f"{when}{suffix}"):
            told = named.get(suffix, {})
            held_out = told.get("unseen")
            unseen = ", ".join(map(str, held_out)) if isinstance(held_out, list) else ""
            name = str(told.get("name", "evaluation"))
            seen = f"{about}; {when} a training that held out: {unseen or 'nothing'}"
            seen += "" if run.is_complete else f" ({run.status})"
            played[suffix] = _Evaluation(records, name, seen)
    if not played and not run.is_complete:
        raise ConfigurationError(f"{path} has no evaluation {when} its training. {run.state}")
    return played
