"""What `estimators-sql` does: one warm-up, and one algorithm after it.

An algorithm is an estimator of advantages and a loss as their papers have them, with the clipping
that belongs to them; what papers choose beside (rates, references, lengths) is the same for all.
Two updates from each batch, or no ratio would ever leave 1 and no clipping differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
from adapters.lab.sql.tiny_grpo import (
    GROUP_SIZE,
    PROMPTS,
    ROOM,
    TinyGrpo,
    lines,
    mean,
    measured,
    sampled_score,
    told,
    train,
)
from adapters.lab.sql.tiny_start import TinyStart, started

STEPS: Final = 60
EVALUATED: Final = 64
TRIES: Final = 2
"""Of each training task on which the score is taken before and after."""
ENDS: Final = 5
"""Batches at the beginning and at the end that are compared."""
_SUM: Final = {"name": "dr_grpo", "constant_length": ROOM}


@dataclass(frozen=True)
class Arm:
    """An algorithm: its name in the world, and settings of the reference trainer."""

    title: str
    trainer: Mapping[str, Any]


ARMS: Final[Mapping[str, Arm]] = {
    "grpo": Arm("GRPO", {"advantages": "group_normalized", "loss": "grpo"}),
    "dr_grpo": Arm("Dr. GRPO", {"advantages": "group_centered", "loss": _SUM}),
    "reinforce++": Arm(
        "REINFORCE++",
        {"advantages": "batch_normalized", "loss": {"name": "dapo", "epsilon_high": 0.2}},
    ),
    "rloo": Arm("RLOO", {"advantages": "leave_one_out", "loss": _SUM}),
    "gspo": Arm("GSPO", {"advantages": "group_normalized", "loss": "gspo"}),
    "dapo": Arm("DAPO", {"advantages": "group_normalized", "loss": "dapo", "sampling": {}}),
    "cispo": Arm("CISPO", {"advantages": "group_normalized", "loss": "cispo"}),
}


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train with one algorithm, and measure."""
    pair = started(TinyStart(**config["start"]), seed)
    trainer = {**config["trainer"], "updates_per_batch": 2}
    scores = [sampled_score(pair, {}, config["evaluated"], TRIES, seed)]
    history = train(pair, TinyGrpo(config["steps"], trainer=trainer), seed)
    scores.append(sampled_score(pair, {}, config["evaluated"], TRIES, seed))
    batches = [step for step in history if "reward" in step]
    first, last = (mean(history, "validity", **side) for side in ({"first": ENDS}, {"last": ENDS}))
    record: dict[str, Any] = {
        "validity_first": told(first),
        "validity_end": told(last),
        "failed": last < first / 2,
        "entropy_end": told(mean(history, "entropy", last=ENDS)),
        "rollouts": GROUP_SIZE * sum(each.get("drawn_groups", PROMPTS) for each in batches),
    }
    record |= {"score_before": told(scores[0]), "score_after": told(scores[1])}
    record["score_gained"] = told(scores[1] - scores[0])
    record |= {f"held_out_{k}": v for k, v in measured(pair, config["evaluated"], seed).items()}
    return record | lines(batches, "reward")


def cells(scale: Scale) -> dict[str, Config]:
    """Every algorithm; at smoke size for two updates, under names of their own."""
    start: dict[str, Any] = {}
    found: dict[str, Config] = {
        f"short-{name}": {
            "start": start,
            "trainer": dict(arm.trainer),
            "steps": 2,
            "evaluated": 8,
        }
        for name, arm in ARMS.items()
    }
    if scale == "smoke":
        return found
    return found | {
        name: {"start": start, "trainer": dict(arm.trainer), "steps": STEPS, "evaluated": EVALUATED}
        for name, arm in ARMS.items()
    }
