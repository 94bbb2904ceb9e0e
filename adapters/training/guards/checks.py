"""The table of guards, and their checks: pure functions of the metrics of a step and of the run.

    check(now, run, config) -> Finding | None

`now` contains the finite metrics of the step, named as in `toolgym.runs.metrics`. `run` contains a
`Track` for each metric in `TRACKED`, including the current step. If a metric is a share, it is
compared with its best value in the run, taking the sampling errors of both values into account.
Entropy, gradient norm and `mismatch` are compared with their values in the first steps, since their
healthy values depend on the model and the task.

To add a guard, write its check, and add its metric to `TRACKED`, its name to `config.GuardName`,
and a row to `GUARDS`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel

from adapters.training.guards.config import Action, GuardConfig, GuardName
from toolgym.runs.metrics import broken, finite

OK, WARN, SKIP, LOWER_LR, ROLL_BACK, STOP = Action
Numbers = Mapping[str, float]

TRACKED: Final[dict[str, tuple[str, float]]] = {
    "accuracy": ("rollouts", 32),
    "answered": ("rollouts", 32),
    "refused_answerable": ("rollouts", 32),
    "unfinished": ("rollouts", 32),
    "validity": ("turns", 24),
    "held_out_accuracy": ("held_out_episodes", 64),
    **dict.fromkeys(("entropy", "kl", "grad_norm", "mismatch", "ratio"), ("", 1)),
}
"""Tracked metrics, each with the metric of its sample size and a default size.

Only shares have a sample size.
"""
LESS_IS_BETTER: Final = ("refused_answerable", "unfinished")  # tracked as 1 - value
SCALES: Final = (1, 2, 4, 8, 16, 32, 64)  # lengths of the windows over which means are taken
FIRST: Final = 10  # values of the first steps, whose median is the baseline
LEVEL: Final = 5  # values of the current mean
NORMS: Final = 50  # previous gradient norms with which a new one is compared
# Accuracy from which low entropy and equal outcomes mean that the tasks are solved.
SOLVED: Final = 0.9


class Finding(NamedTuple):
    """The finding of a check that trips.

    Attributes:
        reason: The observation, with its values.
        advice: Advice that depends on the metrics; if empty, the advice of the guard is used.
        since: First step of the values that led to the finding; 0 means only the current step.
    """

    reason: str
    advice: str = ""
    since: int = 0


class Track(BaseModel):
    """The history of one metric, stored as at most 150 numbers.

    Attributes:
        first: The first values of the run.
        recent: Steps, values and sample sizes of the latest entries since the last roll-back.
        best: For each window length in `SCALES`, the highest mean of that many consecutive values,
            excluding the latest value.
        squares: Squared differences of successive values.
    """

    first: list[float] = []
    recent: list[tuple[int, float, float]] = []
    best: list[float] = []
    squares: list[float] = []

    def add(self, step: int, value: float, size: float) -> None:
        """Add the value of a step."""
        for index, count in enumerate(SCALES):
            if count > len(self.recent):
                break
            if index == len(self.best):
                self.best.append(self.mean(count))
            self.best[index] = max(self.best[index], self.mean(count))
        if len(self.first) < FIRST:
            self.first.append(value)
        if self.recent:
            self.squares = [*self.squares, (value - self.recent[-1][1]) ** 2][-SCALES[-1] :]
        self.recent = [*self.recent, (step, value, size)][-SCALES[-1] :]

    def values(self, count: int) -> list[float]:
        """Return the last `count` values, or fewer if there are not enough."""
        return [value for _, value, _ in self.recent[-count:]]

    def mean(self, count: int) -> float:
        """Return the mean of the last `count` values."""
        values = self.values(count)
        return sum(values) / len(values)

    @property
    def level(self) -> float | None:
        """The mean of the last five values, or None if there are fewer."""
        return self.mean(LEVEL) if len(self.recent) >= LEVEL else None

    @property
    def start(self) -> float | None:
        """The median of the first ten values, or None if there are fewer."""
        return statistics.median(self.first) if len(self.first) == FIRST else None


class RunHistory(BaseModel):
    """The metrics of a run up to a step.

    Attributes:
        tracks: The track of each metric in `TRACKED`.
        nonfinite: Metrics of this step that must be finite but are nan or infinite.
        idle: Number of consecutive steps without a learning signal, including the current one.
        idle_rollouts: Number of rollouts in these steps.
    """

    tracks: dict[str, Track] = {key: Track() for key in TRACKED}
    nonfinite: list[str] = []
    idle: int = 0
    idle_rollouts: float = 0.0

    def add(self, step: int, metrics: Mapping[str, Any]) -> Numbers:
        """Add the metrics of a step and return the finite ones."""
        now, self.nonfinite = finite(metrics), broken(metrics)
        self.idle_rollouts += now.get("rollouts", 0.0)
        if teaches_nothing(now):
            self.idle += 1
        elif has_rollouts(now):
            self.idle, self.idle_rollouts = 0, 0.0
        for key, (size, default) in TRACKED.items():
            if key in now and _is_comparable(key, now):
                value = 1 - now[key] if key in LESS_IS_BETTER else now[key]
                value = min(1.0, max(0.0, value)) if size else value
                self.tracks[key].add(step, value, max(1.0, now.get(size, default)))
        return now

    def restart(self) -> None:
        """Clear the values that were measured with weights that a roll-back discarded.

        Best values are kept, except for metrics of outcomes on training tasks. If restored weights
        perform worse on training tasks than they did before, the tasks have become harder.
        """
        for key, (size, _) in TRACKED.items():
            self.tracks[key].recent = []
            if size == "rollouts":
                self.tracks[key] = Track()


def has_rollouts(now: Numbers) -> bool:
    """Return whether a step makes the first update from its rollouts."""
    return not now.keys().isdisjoint({"reward", "validity", "accuracy"})


def teaches_nothing(now: Numbers) -> str:
    """Return the reason why a step has no learning signal, or an empty string if it has one.

    >>> teaches_nothing({"grad_norm": 0.3, "dead_groups": 1.0})
    'all rollouts of each task had the same outcome'
    """
    if now.get("validity") == 0:
        return "no turn had a valid call"
    if now.get("accuracy", 0.0) == 0 and now.get("reward_max", now.get("reward", 1.0)) <= 0:
        return "no rollout earned a reward above 0"
    if now.get("dead_groups") == 1:
        return "all rollouts of each task had the same outcome"
    if now.get("learnt_tokens") == 0 or now.get("grad_norm") == 0:
        return "the gradient was 0"
    return ""


def _is_comparable(key: str, now: Numbers) -> bool:
    """Return whether a value belongs in the history of its metric."""
    # Members of groups with equal outcomes only differ in the costs of calls.
    if key == "grad_norm":
        return now[key] > 0 and now.get("dead_groups", 0.0) < 1
    return key not in ("mismatch", "ratio") or has_rollouts(now)


def fall(
    now: Numbers,
    run: RunHistory,
    config: GuardConfig,
    *,
    key: str,
    drop: float = 0.25,
    cluster: float = 4,
    error_scales: tuple[float, float] = (1, 1),
    early: bool = False,
) -> Finding | None:
    """Compare a share with the best value of the run, and return a finding if the share has fallen.

    Means over the last 1, 2, 4, ... 64 values are compared with the best means over at least as
    many values. By default, the variance of a value is the binomial variance. Once there are enough
    values, the variance of the differences between values is used if it is larger, since rollouts
    of a task have similar outcomes.

    Args:
        now: Metrics of the step.
        run: Metrics of the run.
        config: Settings of the guards.
        key: The share, a name in `TRACKED`.
        drop: Relative drop from the best value at which the guard trips.
        cluster: Factor by which the binomial variance is multiplied until 16 differences are
            available.
        error_scales: Factors by which `config.errors` is multiplied: one for a single value and one
            for a mean of several values.
        early: Whether a mean of fewer than four values can be the best value.
    """
    if key not in now:
        return None
    track = run.tracks[key]
    size = statistics.fmean(size for _, _, size in track.recent)
    squares = track.squares[:-1]
    longest = SCALES[max(0, len(track.best) - 1)]
    for count in (count for count in SCALES if count <= len(track.recent)):
        mean = track.mean(count)
        errors = config.errors * error_scales[count > 1]
        for best_count, best in zip(SCALES, track.best, strict=False):
            shortest = longest // 4 if early else max(count, min(4, longest), longest // 4)
            if best_count < shortest or mean > (1 - drop) * best:  # short means are high by chance
                continue
            pooled = (count * mean + best_count * best) / (count + best_count)
            seen = size * (count + best_count)
            # Keep shares of a few rollouts away from 0 and 1.
            pooled = (seen * pooled + 1) / (seen + 2)
            variance = pooled * (1 - pooled) / size
            if len(squares) >= 16:
                variance = max(variance, statistics.fmean(squares) / 2)
            else:
                variance *= cluster
            if best - mean > errors * math.sqrt(variance * (1 / count + 1 / best_count)):
                shown = [1 - x if key in LESS_IS_BETTER else x for x in (mean, best)]
                reason = f"`{key}` is {shown[0]:.0%} in {_times(count)}; the best was"
                reason += f" {shown[1]:.0%} in {_times(best_count)}"
                return Finding(reason, since=track.recent[-count][0])
    return None


def _times(count: int) -> str:
    return f"{count} values" if count > 1 else "1 value"


def answering(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the model answers a quarter fewer of all questions or of the answerable questions."""
    falls = (fall(now, run, config, key=key) for key in ("answered", "refused_answerable"))
    return next(filter(None, falls), None)


def entropy(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the entropy is far above or below that of the first steps.

    The upper limit is 4 times the entropy of the first steps. The lower limit is
    `config.entropy_floor` times the entropy of the first steps and does not apply if the tasks are
    solved.
    """
    level, start = run.tracks["entropy"].level, run.tracks["entropy"].start
    if level is None or start is None:
        return None
    low = level < config.entropy_floor * start and now.get("accuracy", 0.0) < SOLVED
    if not low and level <= 4 * start:
        return None
    return Finding(f"entropy is {level:.3g} nats; it was {start:.3g} in the first steps")


def kl(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the KL divergence from the reference model is above `config.kl_limit`."""
    level = run.tracks["kl"].level
    if level is None or level <= config.kl_limit:
        return None
    return Finding(f"KL divergence is {level:.3g} nats per token, above {config.kl_limit:g}")


def gradient(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if a loss, gradient or weight is not finite, or if the gradient norm jumps.

    A jump is a gradient norm above 10 times the largest of the previous 50 norms.
    """
    if run.nonfinite:
        verb = "is" if len(run.nonfinite) == 1 else "are"
        return Finding(f"{' and '.join(run.nonfinite)} {verb} not finite")
    for key, name in (("nonfinite_weights", "weights"), ("nonfinite_gradients", "gradients")):
        if now.get(key):
            return Finding(f"the {name} of {now[key]:.0f} parameters are not finite")
    earlier = run.tracks["grad_norm"].values(NORMS + 1)[:-1]
    norm = now.get("grad_norm", 0.0)
    if len(earlier) < FIRST or norm <= 10 * max(earlier) or now.get("dead_groups") == 1:
        return None
    usual = statistics.median(earlier)
    return Finding(f"the gradient norm is {norm:.3g}; the median of this run is {usual:.3g}")


def growth(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the gradient norm has grown to 50 times that of the first steps."""
    track = run.tracks["grad_norm"]
    if track.start is None or len(track.recent) < FIRST:
        return None
    level = statistics.median(track.values(FIRST))
    if level <= 50 * track.start:
        return None
    return Finding(f"the gradient norm is {level:.3g}; it was {track.start:.3g} in the first steps")


def mismatch(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the token probabilities of fresh rollouts differ between training and sampling."""
    level, start = run.tracks["mismatch"].level, run.tracks["mismatch"].start
    limit = min(0.2, max(0.05, 5 * start)) if start is not None else 0.2
    if level is not None and level > limit:
        return Finding(f"`mismatch` is {level:.3g} nats per token, above {limit:.3g}")
    ratio = run.tracks["ratio"].level
    if ratio is not None and not 2 / 3 <= ratio <= 3 / 2:
        return Finding(f"the mean `ratio` of fresh rollouts is {ratio:.3g}; it should be near 1")
    return None


def idle(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the last `config.idle_steps` steps had no learning signal and tasks are unsolved."""
    cause = teaches_nothing(now)
    if not cause or run.idle < config.idle_steps or _is_solved(now):
        return None
    may_be_chance = now.get("validity", 1.0) > 0 and now.get("unfinished", 0.0) < 0.5
    if may_be_chance and "rollouts" in now and run.idle_rollouts < 32 * config.idle_steps:
        return None
    reason = f"no learning signal in {run.idle} successive steps: in the last one {cause}"
    if now.get("unfinished", 0.0) >= 0.5:
        cut = f"; {now['unfinished']:.0%} of the rollouts ran out of tokens or turns"
        return Finding(reason + cut, "Double max_completion_length.")
    if now.get("accuracy", 0.0) >= 0.1 and now.get("validity", 1.0) > 0:
        return Finding(
            reason, "Train on tasks that are sometimes solved, or play more rollouts per task."
        )
    return Finding(reason)


def solved(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Trip if the last `config.idle_steps` steps had no learning signal and tasks are solved."""
    if run.idle < config.idle_steps or not _is_solved(now):
        return None
    return Finding(
        f"{now['accuracy']:.0%} of the rollouts are correct, so steps have no learning signal"
    )


def _is_solved(now: Numbers) -> bool:
    return now.get("accuracy", 0.0) >= SOLVED


@dataclass(frozen=True)
class Guard:
    """A guard: a check, and the actions that are requested as long as the check fails.

    Attributes:
        name: Name in the config, in findings and in the docs.
        reads: Metrics that the guard reads. The guard checks only steps that have at least one of
            these metrics. If empty, the guard checks all steps.
        check: Function that returns a finding if the guard trips.
        actions: Actions in order. The first action is requested when the guard trips, the next one
            if the guard still trips `wait` steps later. The last action is repeated. After ten
            steps without a trip, the sequence starts over.
        advice: Suggested changes, starting with the remedy for the most likely cause.
        wait: Number of steps between two actions, counting only steps that have the guard's
            metrics, or the name of the `GuardConfig` field that holds this number. With 0, the
            guard can act at every step.
        blames_weights: Whether a trip marks the weights as unhealthy. Roll-backs do not restore
            unhealthy weights.
    """

    name: GuardName
    reads: tuple[str, ...]
    check: Callable[[Numbers, RunHistory, GuardConfig], Finding | None]
    actions: tuple[Action, ...]
    advice: str
    wait: int | Literal["idle_steps"] = 5
    blames_weights: bool = True


_DRIFT: Final = (WARN, LOWER_LR, ROLL_BACK, ROLL_BACK, STOP)
_SLOWER: Final = (
    "Lower the learning rate by a factor of 3 to 10, use groups of 8 or more rollouts, and do not"
    " divide advantages by a group's standard deviation."
)

GUARDS: Final = (
    Guard(
        "success",
        ("accuracy",),
        partial(fall, key="accuracy"),
        _DRIFT,
        f"{_SLOWER} If the tasks have become harder, set actions={{'success': ['warn']}}.",
    ),
    Guard(
        "answering",
        ("answered", "refused_answerable"),
        answering,
        _DRIFT,
        f"{_SLOWER} Check that a correct answer earns more than giving up.",
    ),
    Guard(
        "validity",
        ("validity",),
        partial(fall, key="validity", drop=0.5, cluster=1, error_scales=(0.8, 0.8), early=True),
        (ROLL_BACK, ROLL_BACK, STOP),
        _SLOWER,
    ),
    Guard(
        "unfinished",
        ("unfinished",),
        partial(fall, key="unfinished"),
        _DRIFT,
        f"Raise max_completion_length if longer rollouts are needed. {_SLOWER}",
    ),
    Guard(
        "held_out",
        ("held_out_accuracy",),
        partial(fall, key="held_out_accuracy", cluster=1, error_scales=(1, 0.7)),
        (WARN, WARN, ROLL_BACK, STOP),
        "Keep the best weights (checkpoint=best), train on more tasks, or stop earlier.",
        wait=1,
    ),
    Guard(
        "entropy",
        ("entropy",),
        entropy,
        _DRIFT,
        "If it fell: raise the upper bound of the ratio to 1.28, or add a KL weight of .01 to .05."
        " If it rose: lower the entropy bonus. In both cases lower the learning rate.",
    ),
    Guard(
        "kl",
        ("kl",),
        kl,
        (LOWER_LR, ROLL_BACK, ROLL_BACK, STOP),
        "Lower the learning rate, raise the KL weight, or make one update from each batch.",
    ),
    Guard(
        "gradient",
        (),
        gradient,
        (SKIP, SKIP, ROLL_BACK, ROLL_BACK, STOP),
        "Lower the learning rate. Look for tokens whose probability is far from that of the"
        " reference or the sampling policy: clamp log-ratios, and compute log-probabilities in"
        " float32.",
        wait=0,
    ),
    Guard("growth", ("grad_norm",), growth, _DRIFT, _SLOWER),
    Guard(
        "mismatch",
        ("mismatch", "ratio"),
        mismatch,
        (WARN, WARN, STOP),
        "Check that sampling uses the trained weights, the same tokens and the same temperature."
        " Compute log-probabilities in float32.",
        blames_weights=False,
    ),
    Guard(
        "idle",
        (),
        idle,
        (WARN, WARN, STOP),
        "Run `toolgym preflight` on this model, raise --sft-steps, use parsing='lenient', or start"
        " with easier tasks. Read rollouts.jsonl: look for errors, and for correct answers that"
        " are scored as incorrect.",
        wait="idle_steps",
        blames_weights=False,
    ),
    Guard(
        "solved",
        ("accuracy",),
        solved,
        (WARN,),
        "Stop the training, or continue with harder tasks.",
        wait="idle_steps",
        blames_weights=False,
    ),
)
