"""The guards of `adapters.training` around a training of the micro-model, as a trainer has them.

    watch = Watch(trainer, GuardConfig())      and then   watch.step()   until watch.stopped

They are asked when the gradient is known, be it none. Snapshots are kept in memory, every few
updates; on a roll-back weights and optimizer become those of the snapshot that the guards choose.
So they do at the end of a training that was stopped: that is the checkpoint that a user goes on
from.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from adapters.lab.micro.loop import Trainer
from adapters.training.guards.config import GUARD_NAMES, Action, GuardConfig
from adapters.training.guards.guards import Guards

EVERY: Final = 5
_NAMES: Final = {
    "validity": "valid",
    "zero_variance_groups": "equal_rewards",
    "loss": "policy_loss",
    **{name: name for name in ("reward", "accuracy", "entropy", "kl", "grad_norm", "dead_groups")},
}
"""By the guards' name of a number, ours."""


class Watch:
    """Guards at the gate of a trainer. It puts itself there.

    Attributes:
        stopped: Why they ended the training; empty while they have not.
        tripped: By guard, how often.
    """

    def __init__(self, trainer: Trainer, config: GuardConfig) -> None:
        self._trainer, self._guards = trainer, Guards(config)
        self._snapshots: dict[int, tuple[Any, Any]] = {}
        self._step = 0
        self.stopped = ""
        self.tripped: dict[str, int] = {}
        trainer.gate = self

    def step(self) -> dict[str, float]:
        """One step of the trainer; a step without any gradient is looked at as well."""
        numbers = self._trainer.step()
        if "grad_norm" not in numbers:
            self({**numbers, "grad_norm": 0.0})
        return numbers

    def __call__(self, numbers: Mapping[str, float]) -> bool:
        """Whether to make the update; what else is to be done is done."""
        if self._step % EVERY == 0:
            self._snapshots[self._step] = self._state()
        self._step += 1
        config = self._trainer.config
        known = {name: numbers[own] for name, own in _NAMES.items() if own in numbers}
        known["turns"] = known["rollouts"] = float(config.group_size * config.prompts)
        decision = self._guards.observe(self._step, known)
        for each in decision.findings:
            self.tripped[each.guard] = self.tripped.get(each.guard, 0) + 1
        if decision.action is Action.STOP:
            self.stopped = decision.diagnosis
        if decision.action in (Action.STOP, Action.ROLL_BACK):
            self._roll_back()
        for group in self._trainer.optimizer.param_groups:
            group["lr"] = config.learning_rate * decision.learning_rate_scale
        return decision.update

    @property
    def numbers(self) -> dict[str, float]:
        """The guards' own numbers, see `Guards.metrics`."""
        return self._guards.metrics()

    def _state(self) -> tuple[Any, Any]:
        trainer = self._trainer
        return (
            copy.deepcopy(trainer.model.state_dict()),
            copy.deepcopy(trainer.optimizer.state_dict()),
        )

    def _roll_back(self) -> None:
        place = self._guards.choose_snapshot(self._snapshots)
        if place is None:
            self.stopped = self.stopped or "The guards ask for healthy weights: there are none."
            return
        weights, moments = self._snapshots[place]
        self._trainer.model.load_state_dict(weights)
        self._trainer.optimizer.load_state_dict(copy.deepcopy(moments))


def only(name: str, **settings: Any) -> GuardConfig:
    """A config in which one guard acts, by what it does of itself, and no other says anything."""
    off = {other: () for other in GUARD_NAMES if other != name}
    return GuardConfig.model_validate({"actions": off, **settings})
