"""`Snapshots`: the states that a run's guards roll it back to.

A snapshot has what an update changes and nothing else: the weights that are trained (of LoRA, the
adapter), the optimizer's state and the schedule's. They are files, since a run that was killed and
taken up again must find the same ones; those that are later than the checkpoint it goes on from are
thrown away, and old ones only when a checkpoint has made sure that they are not needed any more.
The first one, of the model as it came, is always kept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerState

_NAME = re.compile(r"step-(\d+)\.pt")


class Snapshots:
    """The snapshot files of one run.

    Args:
        folder: Where they lie; every process has to see it.
        model: The model, unwrapped.
        optimizer: Its optimizer.
        scheduler: The learning rate's schedule.
        writes: Whether this process writes and deletes; one of them does.
        wait: Waits for the other processes.
    """

    def __init__(
        self,
        folder: Path,
        model: nn.Module,
        optimizer: Any,
        scheduler: Any,
        *,
        writes: bool = True,
        wait: Callable[[], Any] = lambda: None,
    ) -> None:
        self._folder, self._model = folder, model
        self._optimizer, self._scheduler = optimizer, scheduler
        self._writes, self._wait = writes, wait

    def steps(self) -> list[int]:
        """The steps after which a snapshot was taken, 0 for the one before the first step."""
        matches = [_NAME.fullmatch(path.name) for path in self._folder.glob("step-*.pt")]
        return sorted(int(match.group(1)) for match in matches if match)

    def take(self, step: int) -> None:
        """Write the snapshot of a step, whole or not at all."""
        if self._writes:
            self._folder.mkdir(parents=True, exist_ok=True)
            fresh = self._folder / f".step-{step}.new"
            torch.save(self._now(), fresh)
            os.replace(fresh, self._path(step))
        self._wait()

    def restore(self, step: int) -> None:
        """Load weights, optimizer and schedule from the snapshot of a step."""
        snapshot = torch.load(self._path(step), map_location="cpu", weights_only=True)
        with torch.no_grad():
            for name, parameter in self._trained().items():
                parameter.copy_(snapshot["weights"][name])
        self._optimizer.load_state_dict(snapshot["optimizer"])
        self._scheduler.load_state_dict(snapshot["scheduler"])

    def prune(self, latest: int, upto: int | None = None) -> None:
        """Delete all snapshots but the first and some of the latest.

        Args:
            latest: How many of the latest stay.
            upto: Those of later steps go first; None: there are none.
        """
        steps = self.steps()
        past = [step for step in steps if upto is None or step <= upto]
        kept = {0, *past[-latest:]}
        if self._writes:
            for step in steps:
                if step not in kept:
                    self._path(step).unlink(missing_ok=True)
        self._wait()

    def clear(self) -> None:
        """Delete all snapshots."""
        if self._writes:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._wait()

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step}.pt"

    def _trained(self) -> Mapping[str, nn.Parameter]:
        return {name: p for name, p in self._model.named_parameters() if p.requires_grad}

    def _now(self) -> dict[str, Any]:
        weights: dict[str, Tensor] = {
            name: parameter.detach().cpu() for name, parameter in self._trained().items()
        }
        return {
            "weights": weights,
            "optimizer": self._optimizer.state_dict(),
            "scheduler": self._scheduler.state_dict(),
        }


# Our own state in the checkpoints of transformers' `Trainer`.
#
# `trainer_state.json` has room for the states of callbacks, and is the last file that a checkpoint
# gets: where it is whole, all of it is there, and a checkpoint without it is passed over. What is
# put there is JSON.


def load_state(state: TrainerState, name: str) -> Any:
    """The state under a name in the checkpoint that a run is resumed from; None without one."""
    states: Any = state.stateful_callbacks or {}
    return states.get(name)


def save_state(state: TrainerState, name: str, value: dict[str, Any]) -> None:
    """Put a state under a name into the next checkpoint."""
    states: Any = state.stateful_callbacks or {}
    updated: Any = {**states, name: value}
    state.stateful_callbacks = updated
