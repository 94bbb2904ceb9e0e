"""Audit of a run: a second, independent rule scores a sample of its rollouts again.

Incorrect scores lead to incorrect advantages, which a reward curve does not reveal. The second rule
of an environment's family (`TaskFamily.recheck`) shares no code with the first rule. The audit
reports how often the two rules agree, with a 95 % Wilson interval, and each rollout on which they
differ.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from adapters.training.runs.evaluations import evaluations, selection_source
from adapters.training.runs.reproducibility import reproducibility
from adapters.training.settings import read_settings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError, TaskRefused
from toolgym.family import TaskFamily
from toolgym.intervals import wilson_interval
from toolgym.runs.episodes import is_evaluation
from toolgym.runs.files import Record
from toolgym.runs.run import ALL_PHASES, EVALUATION, SELECTION, Run
from toolgym.statistics import recorded_kwargs


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Attributes:
        rollouts: Number of scored rollouts of the run, in the chosen phases.
        sampled: Number of rollouts in the sample.
        decided: Number of sampled rollouts that the second rule can score.
        right: Number of decided rollouts that were recorded as correct.
        agreement: Share of the decided rollouts on which the rules agree, or None if there are
            none.
        interval: 95 % Wilson interval of the agreement.
        disagreements: Rollouts on which the rules differ. Each disagreement has `phase`, `step`,
            `task_id`, the results `recorded` and `rechecked`, the last message of the model
            (`said`), and the complete `task` with its solution.
        data_changed: Whether the tasks or their files have changed since the run began.
    """

    rollouts: int
    sampled: int
    decided: int
    right: int
    agreement: float | None
    interval: tuple[float, float]
    disagreements: tuple[dict[str, Any], ...]
    data_changed: bool

    @property
    def undecided(self) -> int:
        """Number of sampled rollouts that the second rule cannot score."""
        return self.sampled - self.decided

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {**asdict(self), "undecided": self.undecided}


def audit(
    run: Run,
    *,
    n: int | None = 500,
    phases: Iterable[str] = ALL_PHASES,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Audit:
    """Score a sample of the rollouts of a run again.

    Args:
        run: A run of `toolgym train`, complete or not, or an evaluation.
        n: Maximum number of rollouts, sampled uniformly; None means all.
        phases: Phases of the rollouts.
        seed: Seed of the sample.
        progress: Function that is called with the number of finished rollouts and their total.

    Raises:
        ConfigurationError: If the run does not record its environment, its family has no second
            rule, there are no rollouts, `n` is below 1, or there is no such phase.
    """
    names = sorted(set(phases))
    if n is not None and n < 1:
        raise ConfigurationError(f"n must be at least 1, got {n}.")
    if unknown := sorted({*names} - {*ALL_PHASES}):
        raise ConfigurationError(
            f"there is no phase {unknown[0]!r} to audit; choose from {', '.join(ALL_PHASES)}."
        )
    env_id, by_phase = phase_arguments(run)
    envs = {name: _environment(env_id, by_phase[name]) for name in names if name in by_phase}

    def scored() -> Iterator[Record]:
        """Yield the scored rollouts one by one, since they might not all fit into memory."""
        return (r for r in run.rollouts() if r["phase"] in envs and r.get("scored"))

    rollouts = sum(1 for _ in scored())
    count = rollouts if n is None else min(n, rollouts)
    places = set(random.Random(f"toolgym-audit-{seed}").sample(range(rollouts), count))
    chosen = [record for place, record in enumerate(scored()) if place in places]
    if not chosen:
        raise ConfigurationError(f"{run.path} has no scored rollout of {', '.join(names)}.")
    decided = right = 0
    differing = []
    for done, record in enumerate(chosen, 1):
        env, turns = envs[record["phase"]], record["turns"]
        try:
            task = env.tasks.require(record["task_id"])
        except (ConfigurationError, TaskRefused):  # the data have changed
            verdict = None
        else:
            verdict = env.family.recheck(env, task, turns)
        decided += verdict is not None
        right += verdict is not None and record["correct"]
        if verdict not in (None, record["correct"]):
            differing.append(
                {
                    **{key: record[key] for key in ("phase", "step", "task_id")},
                    "recorded": record["correct"],
                    "rechecked": verdict,
                    "said": turns[-1]["action"] if turns else "",
                    "task": env.family.shown(task),
                }
            )
        progress(done, len(chosen))
    agreed = decided - len(differing)
    return Audit(
        rollouts=rollouts,
        sampled=len(chosen),
        decided=decided,
        right=right,
        agreement=agreed / decided if decided else None,
        interval=wilson_interval(agreed, decided),
        disagreements=tuple(differing),
        data_changed=_has_other_data(run),
    )


def phase_arguments(run: Run) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """Return the environment id of a run, and the arguments of the environment in each phase.

    Raises:
        ConfigurationError: If the run does not record them.
    """
    if is_evaluation(run.config):
        return str(run.config.get("env_id")), {EVALUATION: recorded_kwargs(run.config) or {}}
    saved = run.config.get("settings")
    if not isinstance(saved, dict):
        raise ConfigurationError(
            f"{run.path} does not record its environment: its config.json has no `settings`. Runs"
            " of `toolgym train` and `toolgym eval --out FOLDER` can be audited."
        )
    settings = read_settings(saved)
    planned = evaluations(settings)
    by_phase: dict[str, Mapping[str, Any]] = {"grpo": settings.training_kwargs}
    for each in planned:
        by_phase |= {f"{when}{each.suffix}": each.env_kwargs for when in ("before", "after")}
    return settings.env_id, {**by_phase, SELECTION: selection_source(planned).env_kwargs}


def _environment(env_id: str, kwargs: Mapping[str, Any]) -> ToolEnv[Any]:
    """Make the environment of a phase and check that it has a second rule."""
    env = registration.make(registration.recorded(env_id), **kwargs)
    if type(env.family).recheck is TaskFamily.recheck:
        raise ConfigurationError(
            f"{env_id} has no second rule. Give its `family` a method `recheck` that decides in"
            " another way whether recorded turns contain the correct answer."
        )
    return env


def _has_other_data(run: Run) -> bool:
    recorded = (run.config.get("reproducibility") or {}).get("data")
    if recorded is None:
        return False
    settings = read_settings(run.config.get("settings"))
    return bool(recorded != reproducibility(settings, 1)["data"])
