"""What `estimators` does: trainings by the names of the field, in two conditions.

| condition | rollouts of a step | rate   |                                             |
| --------- | ------------------ | ------ | ------------------------------------------- |
| `usual`   | 4 groups of 8      | 0.0001 | at which GRPO learns                        |
| `pairs`   | 16 groups of 2     | 0.0001 | the group size that is said to break GRPO   |
| `stress`  | 16 groups of 2     | 0.01   | and the rate at which trainings collapse    |

Every batch is learnt from twice, since at one update all ratios are 1 and the losses that bound
them do not differ. GSPO takes its ratios to the log-probabilities as they were drawn; on one
machine in float32 these are those of the learner to a hundred-thousandth, well inside its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.experiment import Config, Scale
from adapters.lab.micro.loop import MicroConfig, Trainer, start_of
from adapters.lab.micro.measure import accuracy, entropy, examined
from adapters.lab.micro.tokens import CODE, LONGEST

PASSES: Final = 2
COLLAPSED: Final = 0.2
METHODS: Final[Mapping[str, Mapping[str, Any]]] = {
    "grpo": {"estimator": "group_normalized", "loss": "grpo"},
    "dr-grpo": {
        "estimator": "group_centered",
        "loss": "dr_grpo",
        "loss_changes": {"constant_length": LONGEST},
    },
    "reinforce++": {
        "estimator": "batch_normalized",
        "loss": "dapo",
        "loss_changes": {"epsilon_high": 0.2},
    },
    "reinforce++-baseline": {
        "estimator": "batch_normalized_baseline",
        "loss": "dapo",
        "loss_changes": {"epsilon_high": 0.2},
    },
    "rloo": {
        "estimator": "leave_one_out",
        "loss": "dapo",
        "loss_changes": {"epsilon_high": 0.2},
    },
    "gspo": {"estimator": "group_normalized", "loss": "gspo"},
    "dapo": {"estimator": "group_normalized", "loss": "dapo", "draws": 3.0},
    "cispo": {"estimator": "group_normalized", "loss": "cispo"},
}
"""Each with the loss that its paper has; where a paper is about advantages alone, the clipped loss
over all tokens."""
CONDITIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "usual": {"group_size": 8, "prompts": 4, "learning_rate": 1e-4},
    "pairs": {"group_size": 2, "prompts": 16, "learning_rate": 1e-4},
    "stress": {"group_size": 2, "prompts": 16, "learning_rate": 1e-2},
}


def run(config: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train, and examine before and after."""
    settings = MicroConfig.of(config)
    trainer = Trainer(settings, start_of(settings, seed), seed)
    first = accuracy(examined(trainer, seed))
    history = [trainer.step() for _ in range(settings.updates)]
    last = examined(trainer, seed)
    valid = sum(ending.valid for ending in last.endings) / len(last.endings)
    return {
        "accuracy_first": first,
        "accuracy_end": accuracy(last),
        "gained": accuracy(last) - first,
        "score_end": sum(ending.score for ending in last.endings) / len(last.endings),
        "valid_end": valid,
        "collapsed": valid < COLLAPSED,
        "entropy_end": entropy(trainer.model, last),
        "rollouts": trainer.played,
        "score": [step["score"] for step in history],
    }


def cells(scale: Scale) -> dict[str, Config]:
    """Every method usually and under stress; at `full` in pairs too."""
    conditions = CONDITIONS if scale == "full" else ("usual", "stress")
    base = {"tasks": list(CODE), "passes": PASSES}
    return {
        f"{condition}-{name}": {**base, **METHODS[name], **CONDITIONS[condition]}
        for condition in conditions
        for name in METHODS
    }
