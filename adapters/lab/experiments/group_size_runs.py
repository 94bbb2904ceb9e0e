"""What `group_size` does: trainings in groups of several sizes, and what needs no training.

A training has collapsed when of its last ten batches less than a fifth is valid. Cells differ in
the size of groups, in the estimator and in the step, and are compared at equal rollouts per update
(16); beside them stand the run that the claims are about and the cure that it proposes, at their
own sizes, that run under guards, and single groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro.group_tables import SIZES, advantage_table, live_table
from adapters.lab.micro.guarded import Watch
from adapters.lab.micro.loop import History, MicroConfig, Trainer, mean, start_of
from adapters.lab.micro.measure import examined
from adapters.training.guard_config import GuardConfig

ROLLOUTS: Final = 16
COLLAPSED: Final = 0.2
ESTIMATORS: Final[Mapping[str, Mapping[str, Any]]] = {
    "std": {"estimator": "group_normalized"},
    "none": {"estimator": "group_centered"},
    "batch": {"estimator": "batch_normalized"},
    "loo": {"estimator": "leave_one_out"},
    "clip": {"estimator": "group_normalized", "limit": 0.5},
}
"""`clip` cuts off below what groups of two give, 0.71: the seed's 2 or 3 would never be reached."""
RATES: Final = (1e-3, 3e-3, 1e-2)
RATE: Final = 1e-2
STEP: Final = 0.15
"""Length of a matched step."""


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A table of advantages, a table of live groups, or a training."""
    if config["what"] == "advantages":
        return advantage_table()
    if config["what"] == "live groups":
        return live_table(seed, config["tries"])
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed)
    watch = Watch(trainer, GuardConfig()) if config.get("guarded") else None
    history: History = []
    while len(history) < settings.updates and not (watch and watch.stopped):
        history.append(watch.step() if watch else trainer.step())
    left = examined(trainer, seed)
    valid = sum(ending.valid for ending in left.endings) / len(left.endings)
    return _record(history) | {"valid_left": valid, "nothing_left": valid < COLLAPSED}


def _record(history: History) -> dict[str, Any]:
    valid = [step["valid"] for step in history]
    followed = [
        after == 0
        for before, after, step in zip(valid, valid[1:], history, strict=False)
        if step["updated"] and before >= 0.5
    ]
    return {
        "collapsed": mean(history, "valid", 10) < COLLAPSED,
        "valid_end": mean(history, "valid", 10),
        "score_end": mean(history, "score", 10),
        "prose_end": mean(history, "prose", 10),
        "dead_groups": mean(history, "dead_groups"),
        "updates_then_nothing_valid": sum(followed) / len(followed) if followed else None,
        "largest_advantage": max(step["advantage"] for step in history),
        "valid": valid,
    }


def _training(size: int, estimator: str, rate: float, **more: Any) -> Config:
    settings = {"group_size": size, "prompts": ROLLOUTS // size, "learning_rate": rate}
    return {
        "what": "training",
        "rewards": "levels",
        **settings,
        **ESTIMATORS[estimator],
        **more,
    }


def cells(scale: Scale) -> dict[str, Config]:
    """The tables and the seed's own run at every scale; at `full` all sizes, estimators, steps."""
    found: dict[str, Config] = {
        "advantages": {"what": "advantages"},
        "live": {"what": "live groups", "tries": 32},
        "p30": _training(2, "std", RATE, prompts=3),
        "p30-guarded": {**_training(2, "std", RATE, prompts=3), "guarded": True},
        "p30-lr10": _training(2, "std", RATE / 10, prompts=3),
        "one-k2": _training(2, "std", RATES[1], prompts=1),
        "one-k8": _training(8, "std", RATES[1], prompts=1),
    }
    everything = scale == "full"
    for size in SIZES if everything else (2, 8):
        for name in ESTIMATORS if everything else ("std", "none"):
            for rate in RATES if everything else (RATE,):
                found[f"k{size}-{name}-lr{rate:g}"] = _training(size, name, rate)
            found[f"k{size}-{name}-matched"] = _training(size, name, STEP, optimizer="matched")
    return found
