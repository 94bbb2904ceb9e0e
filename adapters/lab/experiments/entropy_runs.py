"""What `entropy` does: trainings that lose their entropy, and what is said to keep it.

The rate is usual, high, or low enough to be called healthy; the warm-up is usual or has seen few
demonstrations again and again. Entropy is the mean over the tokens of a step, in nats; where a step
teaches nothing, it is that of the step before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro.guarded import Watch, only
from adapters.lab.micro.loop import History, MicroConfig, Trainer, mean, start_of
from adapters.lab.micro.measure import accuracy, entropy, examined
from adapters.lab.micro.tokens import CODE
from adapters.training.guard_config import GuardConfig

THRESHOLD: Final = 0.5
PATIENCE: Final = 50
"""The threshold that is claimed, in nats, and for how many steps."""
FLOOR: Final = 0.03
"""Nats below which hardly anything is left to choose: a tenth of what the usual start has."""
LAST: Final = 10
STARTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "healthy": {"learning_rate": 1e-4},
    "usual": {"learning_rate": 3e-4},
    "high": {"learning_rate": 3e-3},
    "overfit": {"learning_rate": 3e-4, "start_shown": 32, "start_steps": 300},
}
"""`overfit`: 32 demonstrations, each shown some 600 times."""
CURES: Final[Mapping[str, Mapping[str, Any]]] = {
    "bonus": {"loss_changes": {"entropy_bonus": 0.01}},
    "bonus10": {"loss_changes": {"entropy_bonus": 0.1}},
    "guard": {"guard": "relative"},
    "guard-claimed": {"guard": "claimed"},
    "clip": {"passes": 4},
    "clip-higher": {"passes": 4, "loss_changes": {"epsilon_high": 0.28}},
    "clip-higher-much": {"passes": 4, "loss_changes": {"epsilon_high": 0.5}},
}
"""Clipping acts only where a batch is learnt from more than once, so `clip` is what `clip-higher`
is compared with."""


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train, under a guard or not, and follow the entropy."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed)
    watch = Watch(trainer, _guards(config["guard"])) if config.get("guard") else None
    first = examined(trainer, seed)
    history: History = []
    while len(history) < settings.updates and not (watch and watch.stopped):
        history.append(watch.step() if watch else trainer.step())
    last = examined(trainer, seed)
    row = _entropies(history, entropy(trainer.model, first) if not history else None)
    longest = _longest_below(row, THRESHOLD)
    return {
        "entropy_first": row[0],
        "entropy_end": entropy(trainer.model, last),
        "at_floor": entropy(trainer.model, last) < FLOOR,
        "below_claimed": longest,
        "claimed_trips": longest > PATIENCE,
        "accuracy_first": accuracy(first),
        "accuracy_end": accuracy(last),
        "gained": accuracy(last) - accuracy(first),
        "valid_end": sum(each.valid for each in last.endings) / len(last.endings),
        "distinct_end": mean(history, "distinct", LAST),
        "clip_high": sum(step.get("clip_high", 0.0) for step in history) / len(history),
        "steps": len(history),
        "was_stopped": bool(watch and watch.stopped),
        "roll_backs": watch.numbers["roll_backs"] if watch else 0.0,
        "entropy": row,
    }


def _guards(name: str) -> GuardConfig:
    """All guards as they are; or one alone, with the threshold that is claimed."""
    if name == "relative":
        return GuardConfig()
    return only("entropy_floor", entropy_floor_nats=THRESHOLD, patience=PATIENCE)


def _entropies(history: History, known: float | None) -> list[float | None]:
    """Of each step, the last known where it was not measured."""
    row = []
    for step in history:
        known = step.get("entropy", known)
        row.append(known)
    return row


def _longest_below(row: list[float | None], limit: float) -> int:
    """The most steps in a row with entropy below a limit."""
    longest = now = 0
    for value in row:
        now = now + 1 if value is not None and value < limit else 0
        longest = max(longest, now)
    return longest


def cells(scale: Scale) -> dict[str, Config]:
    """What the claims need at every scale; at `full` every cure for every start."""
    if scale == "full":
        wanted = [(start, cure) for start in STARTS for cure in ("", *CURES)]
    else:
        wanted = [("healthy", ""), ("healthy", "guard-claimed"), ("usual", "")]
        wanted += [("high", cure) for cure in ("", "bonus", "guard")]
        wanted += [("usual", cure) for cure in ("clip", "clip-higher")]
        wanted += [("overfit", cure) for cure in ("", "bonus", "guard")]
    return {
        f"{start}-{cure}" if cure else start: {
            "tasks": list(CODE),
            **STARTS[start],
            **CURES.get(cure, {}),
        }
        for start, cure in wanted
    }
