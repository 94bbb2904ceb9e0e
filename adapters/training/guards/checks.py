"""The table of guards, and their checks: pure functions of a step's metrics and the run so far.

    check(now, run, config) -> Finding | None

`now` holds the metrics of the step that are finite, named as in `toolgym.runs.metrics`. `run` holds
a `Track` of each metric in `TRACKED`, this step included. A share is compared with the best of the
run, by the sampling error of both; entropy, gradient norm and mismatch are compared with the first
steps, since their healthy values depend on model and task.

To add a guard: write its check, add its metric to `TRACKED`, its name to `config.GuardName`, and a
row to `GUARDS`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple

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
"""Metrics with a history: the key of the sample size of a share, and its default."""
LESS_IS_BETTER: Final = ("refused_answerable", "unfinished")
SCALES: Final = (1, 2, 4, 8, 16, 32, 64)  # values over which means are taken
FIRST: Final = 10  # values that make the level of the first steps
LEVEL: Final = 5  # values that make the present level
NORMS: Final = 50  # gradient norms that an unusual one is compared with
SOLVED: Final = 0.9  # accuracy from which low entropy and equal outcomes mean success


class Finding(NamedTuple):
    """The finding of a check that trips.

    Attributes:
        reason: What was seen, with the numbers.
        advice: What to change, where it depends on the metrics; empty: the advice of the guard.
        since: The first step of what was seen; 0 if it is this step alone.
    """

    reason: str
    advice: str = ""
    since: int = 0


@dataclass
class Track:
    """The history of one metric, in at most 150 numbers.

    Attributes:
        first: The first values.
        recent: Step, value and sample size of the last values of the present weights.
        best: By scale, the highest mean of so many values in a row before the last one.
        squares: Squared differences of successive values.
    """

    first: list[float] = field(default_factory=list)
    recent: list[tuple[int, float, float]] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)

    def add(self, step: int, value: float, size: float) -> None:
        """Add the value of a step."""
        for place, count in enumerate(SCALES):
            if count > len(self.recent):
                break
            if place == len(self.best):
                self.best.append(self.mean(count))
            self.best[place] = max(self.best[place], self.mean(count))
        if len(self.first) < FIRST:
            self.first.append(value)
        if self.recent:
            self.squares = [*self.squares, (value - self.recent[-1][1]) ** 2][-SCALES[-1] :]
        self.recent = [*self.recent, (step, value, size)][-SCALES[-1] :]

    def values(self, count: int) -> list[float]:
        """The last values, at most so many."""
        return [value for _, value, _ in self.recent[-count:]]

    def mean(self, count: int) -> float:
        """The mean of the last values."""
        values = self.values(count)
        return sum(values) / len(values)

    @property
    def level(self) -> float | None:
        """The mean of the last five values; None where there are fewer."""
        return self.mean(LEVEL) if len(self.recent) >= LEVEL else None

    @property
    def start(self) -> float | None:
        """The median of the first ten values; None where there are fewer."""
        return statistics.median(self.first) if len(self.first) == FIRST else None


class RunHistory:
    """The metrics of a run up to a step, as checks see them.

    Attributes:
        tracks: By key of `TRACKED`.
        nonfinite: Metrics of this step that are nan or infinite and never may be.
        idle: Steps in a row, up to this one, that taught nothing.
        idle_rollouts: Their rollouts.
    """

    def __init__(self) -> None:
        self.tracks = {key: Track() for key in TRACKED}
        self.nonfinite: list[str] = []
        self.idle, self.idle_rollouts = 0, 0.0

    def add(self, step: int, metrics: Mapping[str, Any]) -> Numbers:
        """Add the metrics of a step, and return the finite ones."""
        now, self.nonfinite = finite(metrics), broken(metrics)
        teaches = bool(has_rollouts(now)) and not teaches_nothing(now)
        self.idle = self.idle + 1 if teaches_nothing(now) else 0 if teaches else self.idle
        self.idle_rollouts = self.idle and self.idle_rollouts + now.get("rollouts", 0.0)
        for key, (size, default) in TRACKED.items():
            if key in now and _is_comparable(key, now):
                value = 1 - now[key] if key in LESS_IS_BETTER else now[key]
                value = min(1.0, max(0.0, value)) if size else value
                self.tracks[key].add(step, value, max(1.0, now.get(size, default)))
        return now

    def restart(self) -> None:
        """Forget what the weights did that a roll-back discarded.

        The best values stay, but for outcomes on training tasks: where restored weights do less
        well than they did, the tasks have become harder.
        """
        for key, (size, _) in TRACKED.items():
            self.tracks[key].recent = []
            if size == "rollouts":
                self.tracks[key] = Track()

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint, as JSON can hold it."""
        tracks = {key: asdict(track) for key, track in self.tracks.items()}
        return {"tracks": tracks, "idle": [self.idle, self.idle_rollouts]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore such a state."""
        for key, saved in state["tracks"].items():
            recent = [(step, value, size) for step, value, size in saved["recent"]]
            lists = {name: list(saved[name]) for name in ("first", "best", "squares")}
            self.tracks[key] = Track(recent=recent, **lists)
        self.idle, self.idle_rollouts = state["idle"]


def has_rollouts(now: Numbers) -> bool:
    """Whether a step is the first update from its rollouts."""
    return not now.keys().isdisjoint({"reward", "validity", "accuracy"})


def teaches_nothing(now: Numbers) -> str:
    """Why a step has nothing to teach; empty where it has.

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
    """Whether a value belongs into the history of its metric."""
    if key == "grad_norm":  # groups with equal outcomes only differ in the costs of calls
        return now[key] > 0 and now.get("dead_groups", 0.0) < 1
    return key not in ("mismatch", "ratio") or has_rollouts(now)


def _fall(
    run: RunHistory,
    key: str,
    config: GuardConfig,
    part: float,
    alike: float = 4,
    ease: tuple[float, float] = (1, 1),
) -> Finding | None:
    """The finding of a share that has fallen below the best of the run.

    Means over the last 1, 2, 4, ... 64 values are compared with the best means of as many or more.
    The variance of a value is that of its sample, and at least what the scatter between values
    shows, because rollouts of the same task have similar outcomes.

    Args:
        part: The part of the best that has to be lost.
        alike: The number of rollouts that count as one until the scatter is known.
        ease: Factors on the standard errors that a single value, and a mean of several, has to have
            fallen by.
    """
    track = run.tracks[key]
    size = statistics.fmean(size for _, _, size in track.recent)
    scatter = track.squares[:-1]
    longest = SCALES[max(0, len(track.best) - 1)]
    for count in (count for count in SCALES if count <= len(track.recent)):
        now = track.mean(count)
        errors = config.errors * ease[count > 1]
        for best_count, best in zip(SCALES, track.best, strict=False):
            too_short = best_count < max(count, min(4, longest), longest // 4)  # high by chance
            if too_short or now > (1 - part) * best:
                continue
            middle = (now + best) / 2
            variance = middle * (1 - middle) / size
            if len(scatter) >= 16:
                variance = max(variance, statistics.fmean(scatter) / 2)
            else:
                variance *= alike
            if best - now > errors * math.sqrt(variance * (1 / count + 1 / best_count)):
                shown = [1 - x if key in LESS_IS_BETTER else x for x in (now, best)]
                reason = f"`{key}` is {shown[0]:.0%} in {_times(count)}, the best was"
                reason += f" {shown[1]:.0%} in {_times(best_count)}"
                return Finding(reason, since=track.recent[-count][0])
    return None


def _times(count: int) -> str:
    return f"{count} values" if count > 1 else "1 value"


# The checks.


def success(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Accuracy on training tasks has fallen by a quarter of its best."""
    return _fall(run, "accuracy", config, 0.25)


def answering(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Fewer rollouts answer, or more deny an answer that exists, by a quarter of the best."""
    falls = (
        _fall(run, key, config, 0.25) for key in ("answered", "refused_answerable") if key in now
    )
    return next(filter(None, falls), None)


def validity(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """The share of turns with valid calls has fallen by half of its best."""
    return _fall(run, "validity", config, 0.5, alike=1, ease=(0.8, 0.8))


def unfinished(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Fewer rollouts end before they run out of tokens or turns, by a quarter of the best."""
    return _fall(run, "unfinished", config, 0.25)


def held_out(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Accuracy on held-out tasks has fallen by a quarter of its best."""
    return _fall(run, "held_out_accuracy", config, 0.25, alike=1, ease=(1, 0.7))


def entropy(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Entropy is below .18 of the first steps', and the tasks are not solved; or above 4 times."""
    level, start = run.tracks["entropy"].level, run.tracks["entropy"].start
    if level is None or start is None:
        return None
    low = level < config.entropy_floor * start and now.get("accuracy", 0.0) < SOLVED
    if not low and level <= 4 * start:
        return None
    return Finding(f"entropy is {level:.3g} nats, it was {start:.3g} in the first steps")


def kl(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """The KL divergence from the reference model is above .5 nats per token."""
    level = run.tracks["kl"].level
    if level is None or level <= config.kl_limit:
        return None
    return Finding(f"KL divergence is {level:.3g} nats per token, above {config.kl_limit:g}")


def gradient(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """A loss, gradient or weight is nan or infinite, or the norm is 10 times the largest of 50."""
    if run.nonfinite:
        return Finding(f"{' and '.join(run.nonfinite)} not finite")
    for key, name in (("nonfinite_weights", "weights"), ("nonfinite_gradients", "gradients")):
        if now.get(key):
            return Finding(f"the {name} of {now[key]:.0f} parameters are not finite")
    earlier = run.tracks["grad_norm"].values(NORMS + 1)[:-1]
    norm = now.get("grad_norm", 0.0)
    if len(earlier) < FIRST or norm <= 10 * max(earlier) or now.get("dead_groups") == 1:
        return None
    usual = statistics.median(earlier)
    return Finding(f"the gradient norm is {norm:.3g}, the usual one of this run is {usual:.3g}")


def growth(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """The gradient norm has grown to 50 times that of the first steps."""
    track = run.tracks["grad_norm"]
    if track.start is None or len(track.recent) < FIRST:
        return None
    level = statistics.median(track.values(FIRST))
    if level <= 50 * track.start:
        return None
    return Finding(f"the gradient norm is {level:.3g}, it was {track.start:.3g} in the first steps")


def mismatch(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Fresh rollouts have other probabilities in training than they had when they were sampled."""
    level, start = run.tracks["mismatch"].level, run.tracks["mismatch"].start
    limit = min(0.2, max(0.05, 5 * start)) if start is not None else 0.2
    if level is not None and level > limit:
        return Finding(f"`mismatch` is {level:.3g} nats per token, above {limit:.3g}")
    ratio = run.tracks["ratio"].level
    if ratio is not None and not 2 / 3 <= ratio <= 3 / 2:
        return Finding(f"the mean `ratio` of fresh rollouts is {ratio:.3g}, it should be near 1")
    return None


def idle(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Ten steps in a row taught nothing, and the tasks are not solved."""
    why = teaches_nothing(now)
    if not why or run.idle < config.idle_steps or _is_solved(now):
        return None
    by_chance = now.get("validity", 1.0) > 0 and now.get("unfinished", 0.0) < 0.5
    if by_chance and "rollouts" in now and run.idle_rollouts < 32 * config.idle_steps:
        return None
    seen = f"nothing to learn in {run.idle} steps in a row, now because {why}"
    if now.get("unfinished", 0.0) >= 0.5:
        cut = f"; {now['unfinished']:.0%} of the rollouts ran out of tokens or turns"
        return Finding(seen + cut, "Raise max_completion_length, to twice as much for a start.")
    if now.get("accuracy", 0.0) >= 0.1 and now.get("validity", 1.0) > 0:
        return Finding(
            seen, "Play tasks that are sometimes done, or compare more rollouts of each."
        )
    return Finding(seen)


def solved(now: Numbers, run: RunHistory, config: GuardConfig) -> Finding | None:
    """Ten steps in a row taught nothing, because the tasks are solved."""
    if run.idle < config.idle_steps or not _is_solved(now):
        return None
    return Finding(f"{now['accuracy']:.0%} of the rollouts are correct, and groups are all alike")


def _is_solved(now: Numbers) -> bool:
    return now.get("accuracy", 0.0) >= SOLVED


@dataclass(frozen=True)
class Guard:
    """A guard: a check, and the actions taken in turn while it keeps tripping.

    Attributes:
        name: Its name in the config, in findings and in the docs.
        reads: Metrics of which a step must have one, or the guard has no opinion; empty: any step.
        check: Returns a finding where it trips.
        actions: At first, and then after each `wait` steps at which it still trips; the last one is
            repeated. After ten steps at which it does not trip they begin anew.
        advice: What to change, the likeliest cause first.
        wait: Steps with its metrics between two actions, or the field of `GuardConfig` with their
            number; 0 acts at every step.
        blames_weights: Weights at which it trips are no longer worth returning to.
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
    "Lower the learning rate by a factor of 3 to 10, compare 8 or more rollouts of a task, and do"
    " not divide advantages by a group's standard deviation."
)

GUARDS: Final = (
    Guard(
        "success",
        ("accuracy",),
        success,
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
    Guard("validity", ("validity",), validity, (ROLL_BACK, ROLL_BACK, STOP), _SLOWER),
    Guard(
        "unfinished",
        ("unfinished",),
        unfinished,
        _DRIFT,
        f"Raise max_completion_length if longer rollouts are needed. {_SLOWER}",
    ),
    Guard(
        "held_out",
        ("held_out_accuracy",),
        held_out,
        (WARN, WARN, ROLL_BACK, STOP),
        "Keep the best weights (checkpoint=best), train on more tasks, or end earlier.",
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
        "Look for a token that is far from the reference or the sampling policy: clamp log-ratios,"
        " compute log-probabilities in float32. Lower the learning rate.",
        wait=0,
    ),
    Guard("growth", ("grad_norm",), growth, _DRIFT, _SLOWER),
    Guard(
        "mismatch",
        ("mismatch", "ratio"),
        mismatch,
        (WARN, WARN, STOP),
        "Make sure that sampling uses the trained weights, the same tokens and temperature, and"
        " compute log-probabilities in float32.",
        blames_weights=False,
    ),
    Guard(
        "idle",
        (),
        idle,
        (WARN, WARN, STOP),
        "Run `toolgym preflight` on this model, warm up longer, use parsing='lenient', or begin"
        " with easier tasks. See rollouts.jsonl for errors and for whether a correct answer is"
        " judged correct.",
        wait="idle_steps",
        blames_weights=False,
    ),
    Guard(
        "solved",
        ("accuracy",),
        solved,
        (WARN,),
        "End the training, or go on with harder tasks.",
        wait="idle_steps",
        blames_weights=False,
    ),
)
