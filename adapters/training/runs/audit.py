"""Are the verdicts that a run was trained on right? A sample of them is given a second time.

A verifier that is wrong now and then feeds false signals into every advantage, and nothing in a
reward curve shows it. So a sample of the recorded rollouts is judged again by the second rule of
the environment's family (`TaskFamily.recheck`), which shares no code with the first. What comes out
is how often the two agree, with its 95 % Wilson interval, and each rollout on which they differ: a
person can tell in a minute who of the two is right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from adapters.training.runs.evaluations import evaluations, played_with, source_of
from adapters.training.runs.reproducibility import reproducibility
from adapters.training.settings import TrainSettings, read_settings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.family import TaskFamily
from toolgym.intervals import wilson_interval
from toolgym.runs.episodes import is_evaluation
from toolgym.runs.files import Record
from toolgym.runs.run import ALL_PHASES, EVALUATION, SELECTION_PHASES, Run
from toolgym.statistics import recorded_kwargs

T = TypeVar("T")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Disagreement:
    """A rollout that the two rules judge differently.

    Attributes:
        recorded: Correct, as the environment judged it while it was played.
        rechecked: Correct, by the second rule.
        said: What the model wrote last.
        task: The task in full, as its family shows it.
    """

    phase: str
    step: int | None
    task_id: str
    recorded: bool
    rechecked: bool
    said: str
    task: Mapping[str, str]


@dataclass(frozen=True)
class Audit:
    """The result of judging a sample of rollouts again.

    Attributes:
        rollouts: Scored rollouts that the run has recorded, in the phases asked for.
        sampled: How many of them were judged again.
        undecided: Of these, those on which the second rule cannot tell.
        right: Rollouts recorded as correct among those that were decided.
        disagreements: Those on which the two rules differ.
        data_changed: The tasks or their files are not what they were when the run began.
    """

    rollouts: int
    sampled: int
    undecided: int
    right: int
    disagreements: tuple[Disagreement, ...]
    data_changed: bool = False

    @property
    def decided(self) -> int:
        """Rollouts on which both rules have an opinion."""
        return self.sampled - self.undecided

    @property
    def agreement(self) -> float | None:
        """The share of the decided on which the rules agree; None where nothing was decided."""
        return 1.0 - len(self.disagreements) / self.decided if self.decided else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson score interval of the agreement."""
        return wilson_interval(self.decided - len(self.disagreements), self.decided)

    def to_json(self) -> dict[str, Any]:
        """The figures and the disagreements as plain data."""
        return {
            "agreement": self.agreement,
            "interval": list(self.interval),
            **{name: value for name, value in asdict(self).items() if name != "disagreements"},
            "decided": self.decided,
            "disagreements": [asdict(each) for each in self.disagreements],
        }


def audit(
    run: Run,
    *,
    n: int | None = 500,
    phases: Iterable[str] = ALL_PHASES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Judge a sample of a run's rollouts again.

    Args:
        run: Of `toolgym train`, complete or not.
        n: Rollouts at most, each as likely as any other; None means all.
        phases: Whose rollouts.
        seed: Chooses the sample.
        progress: Called with how many are done and how many there are.

    Raises:
        ConfigurationError: The run tells too little of its environment, its family has no second
            rule, there is nothing to judge, or n is below 1.
    """
    phase_names = sorted(set(phases))
    if (n is not None and n < 1) or not set(phase_names) <= set(ALL_PHASES):
        raise ConfigurationError(f"n must be above 0, a phase one of {', '.join(ALL_PHASES)}.")
    judges = _judges(run, phase_names)
    scored = (r for r in run.rollouts() if r["phase"] in judges and r.get("scored"))
    chosen, rollouts = sample(scored, n, seed)
    if not chosen:
        raise ConfigurationError(f"{run.path} has no scored rollout of {', '.join(phase_names)}.")
    decided = list(_decided(judges, chosen, progress or (lambda done, total: None)))
    return Audit(
        rollouts=rollouts,
        sampled=len(chosen),
        undecided=len(chosen) - len(decided),
        right=sum(record["correct"] for record, _ in decided),
        disagreements=tuple(
            _disagreement(judges[record["phase"]], record, verdict)
            for record, verdict in decided
            if verdict != record["correct"]
        ),
        data_changed=_has_other_data(run),
    )


def _decided(
    judges: Mapping[str, ToolEnv[Any]], records: Sequence[Record], progress: Progress
) -> Iterator[tuple[Record, bool]]:
    """Each record on which the second rule can tell, with what it says."""
    for done, record in enumerate(records, 1):
        verdict = _rechecked(judges[record["phase"]], record)
        if verdict is not None:
            yield record, verdict
        progress(done, len(records))


def sample(items: Iterable[T], n: int | None, seed: int) -> tuple[list[T], int]:
    """A fair sample of a stream, held in memory alone, in the stream's order; and its length.

    Args:
        items: Gone through once.
        n: Items at most; None takes all.
    """
    draw = random.Random(f"toolgym-audit-{seed}")
    reservoir: dict[int, T] = {}
    places: list[int] = []  # algorithm R: the i-th item replaces one of n with chance n / i
    count = 0
    for count, item in enumerate(items, 1):
        if n is None or len(places) < n:
            places.append(count)
            reservoir[count] = item
        elif (place := draw.randrange(count)) < n:
            del reservoir[places[place]]
            places[place] = count
            reservoir[count] = item
    return [reservoir[number] for number in sorted(reservoir)], count


def _settings(run: Run) -> TrainSettings:
    saved = run.config.get("settings")
    if not isinstance(saved, dict):
        raise ConfigurationError(
            f"{run.path} does not say how its environment was made: its config.json has no"
            " `settings`. What `toolgym train` or `toolgym eval --out FOLDER` wrote can be audited."
        )
    return read_settings(saved)


def phase_arguments(run: Run) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """The environment of a run, and by phase the arguments that it was made with.

    Raises:
        ConfigurationError: The run does not tell.
    """
    if is_evaluation(run.config):
        return str(run.config.get("env_id")), {EVALUATION: recorded_kwargs(run.config) or {}}
    settings = _settings(run)
    env_kwargs: dict[str, Mapping[str, Any]] = {"grpo": settings.training_kwargs}
    for each in evaluations(settings):
        env_kwargs |= {f"{when}{each.suffix}": each.env_kwargs for when in ("before", "after")}
    chosen_by = source_of(evaluations(settings)).env_kwargs
    return settings.env_id, env_kwargs | dict.fromkeys(SELECTION_PHASES, chosen_by)


def _judges(run: Run, phases: Sequence[str]) -> dict[str, ToolEnv[Any]]:
    """The environment of each phase that the run has, as it was then."""
    env_id, env_kwargs = phase_arguments(run)
    return {
        phase: _environment(env_id, env_kwargs[phase]) for phase in phases if phase in env_kwargs
    }


def _environment(env_id: str, kwargs: Mapping[str, Any]) -> ToolEnv[Any]:
    """The environment of a phase.

    Raises:
        ConfigurationError: It cannot be made, its module is not imported yet, or its family has no
            second rule.
    """
    env = registration.make(registration.recorded(env_id), **kwargs)
    if type(env.family).recheck is TaskFamily.recheck:
        raise ConfigurationError(
            f"{env_id} has no second rule to judge by: give its `family` a `recheck`"
            " method, which finds out in another way whether recorded turns hold the right answer."
        )
    return env


def _rechecked(env: ToolEnv[Any], record: Mapping[str, Any]) -> bool | None:
    try:
        task = env.tasks.require(record["task_id"])
    except (ConfigurationError, TaskRefused):
        return None  # the data changed, which is told by itself
    return env.family.recheck(env, task, record["turns"])


def _disagreement(env: ToolEnv[Any], record: Mapping[str, Any], verdict: bool) -> Disagreement:
    turns = record["turns"]
    return Disagreement(
        phase=record["phase"],
        step=record["step"],
        task_id=record["task_id"],
        recorded=record["correct"],
        rechecked=verdict,
        said=turns[-1]["action"] if turns else "",
        task=env.family.shown(env.tasks.require(record["task_id"])),
    )


def _has_other_data(run: Run) -> bool:
    then = (run.config.get("reproducibility") or {}).get("data")
    if then is None:
        return False
    settings = _settings(run)
    splits = played_with(settings, evaluations(settings))
    return bool(then != reproducibility(settings.env_id, 1, *splits)["data"])
