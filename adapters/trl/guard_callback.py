"""`GuardCallback`: the guards' decisions, carried out around the optimizer's step.

    gradient complete -> measured -> observe -> the optimizer moves, or its gradients are None

A gradient of 0 still moves weights by momentum, so an update is left out by setting gradients to
None, with which no optimizer touches weight or state, and by putting the schedule back afterwards.
A lower learning rate is lent to the optimizer for its step only, so that no schedule builds on it.
Rolling back restores a snapshot and throws away rollouts that were played ahead; the order of tasks
and PyTorch's random numbers go on, so that what led there is not drawn again. A stop lets the
step be logged, saves nothing more, and ends the run.

The guards' memory, and that of dynamic sampling, is saved in the checkpoints (`save_state`).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from adapters.training.guards.config import Action
from adapters.training.guards.decision import Decision, no_snapshot_message, rollback_message
from adapters.training.guards.guards import Guards
from adapters.trl.snapshots import Snapshots, load_state, save_state

STATE = "toolgym"
_logger = logging.getLogger(__name__)


class Stateful(Protocol):
    """An object with a state that a checkpoint saves, as JSON can hold it."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        ...

    def load_state_dict(self, state: Any) -> None:
        """Restore such a state."""
        ...


class GuardCallback(TrainerCallback):
    """A callback that asks the guards before every update, and carries their decision out.

    Args:
        guards: The guards of the run.
        measure: Returns the step's metrics; called once for each step.
        discard: Discards rollouts that were played ahead.
        may_save: Whether a run could be taken up again from this very step.
        catch_up: Receives the epoch that a run begins in, before its first batch.
        stateful: Other objects whose states a checkpoint saves, by name.
        acts: False where the guards only warn; then no snapshots are taken.
        snapshot_steps: Steps between snapshots.
        snapshot_keep: How many of the latest are kept.
        wait: Waits for the other processes.
    """

    def __init__(
        self,
        guards: Guards,
        measure: Callable[[], dict[str, float]],
        discard: Callable[[], None],
        may_save: Callable[[], bool],
        catch_up: Callable[[float], None],
        *,
        stateful: dict[str, Stateful],
        acts: bool,
        snapshot_steps: int,
        snapshot_keep: int,
        wait: Callable[[], Any],
    ) -> None:
        self.guards = guards
        self.decision: Decision | None = None
        self.stopped: tuple[int, str] | None = None
        self._measure, self._discard, self._may_save = measure, discard, may_save
        self._catch_up = catch_up
        self._stateful: dict[str, Stateful] = {"guards": guards, **stateful}
        self._acts, self._every, self._latest = acts, snapshot_steps, snapshot_keep
        self._wait = wait
        self._snapshots: Snapshots | None = None
        self._frozen: tuple[dict[str, Any], list[float]] | None = None
        self._rates: list[float] = []
        self._save_is_due = False

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the states of a checkpoint, and make sure that there is a snapshot."""
        states = load_state(state, STATE) or {}
        for name, each in self._stateful.items():
            if name in states:
                each.load_state_dict(states[name])
        self._catch_up(state.epoch or 0.0)
        if not self._acts:
            return
        self._snapshots = Snapshots(
            Path(str(args.output_dir)) / "snapshots",
            kwargs["model"],
            kwargs["optimizer"],
            kwargs["lr_scheduler"],
            writes=args.should_save,
            wait=self._wait,
        )
        if state.global_step:
            self._snapshots.prune(self._latest, upto=state.global_step)
        else:
            self._snapshots.clear()
        has_none = not self._snapshots.steps()
        self._wait()  # every process has looked before one of them writes
        if has_none:
            self._snapshots.take(state.global_step)

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Ask the guards, and leave the update out if they decide so."""
        decision = self.guards.observe(state.global_step + 1, self._measure())
        for line in decision.log_lines if state.is_world_process_zero else ():
            _logger.warning("%s", line)
        self.decision = decision
        groups, scheduler = kwargs["optimizer"].param_groups, kwargs["lr_scheduler"]
        rates = [group["lr"] for group in groups]
        if not decision.update:
            kwargs["model"].zero_grad(set_to_none=True)
            self._frozen = (copy.deepcopy(scheduler.state_dict()), rates)
        elif decision.learning_rate_scale != 1:
            self._rates = rates
            for group in groups:
                group["lr"] = group["lr"] * decision.learning_rate_scale

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Give the learning rate back to the schedule."""
        for group, rate in zip(kwargs["optimizer"].param_groups, self._rates, strict=False):
            group["lr"] = rate
        self._rates = []

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Freeze the schedule, roll back, stop, take a snapshot, and save the states."""
        if self._frozen is not None:
            schedule, rates = self._frozen
            kwargs["lr_scheduler"].load_state_dict(schedule)
            for group, rate in zip(kwargs["optimizer"].param_groups, rates, strict=True):
                group["lr"] = rate
            self._frozen = None
        action = self.decision.action if self.decision is not None else Action.OK
        if action is Action.ROLL_BACK:
            self._roll_back(state, control)
        elif action is Action.STOP and self.decision is not None:
            self._stop(state.global_step, self.decision.diagnosis, control)
        elif self._snapshots is not None and state.global_step % self._every == 0:
            self._snapshots.take(state.global_step)
            if args.save_strategy == "no":
                self._snapshots.prune(self._latest)
        save_state(state, STATE, {name: each.state_dict() for name, each in self._stateful.items()})
        self._postpone_save(state, control)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Delete snapshots from long before the checkpoint that is now complete."""
        if self._snapshots is not None:
            self._snapshots.prune(self._latest)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Delete the snapshots; after a stop they stay to be looked at."""
        if self._snapshots is not None and self.stopped is None:
            self._snapshots.clear()

    def _roll_back(self, state: TrainerState, control: TrainerControl) -> None:
        step = state.global_step
        snapshots = self._snapshots.steps() if self._snapshots is not None else []
        back = self.guards.choose_snapshot(snapshots)
        if back is None or self._snapshots is None:
            reasons = self.decision.reasons if self.decision is not None else ()
            cure = "Lower snapshot_steps, or begin again with a longer warm-up."
            self._stop(step, no_snapshot_message(step, reasons, cure), control)
            return
        self._snapshots.restore(back)
        self._discard()
        if state.is_world_process_zero:
            _logger.warning("%s", rollback_message(step, back))

    def _stop(self, step: int, diagnosis: str, control: TrainerControl) -> None:
        self.stopped = (step, diagnosis)
        control.should_training_stop = control.should_log = True
        control.should_save = self._save_is_due = False

    def _postpone_save(self, state: TrainerState, control: TrainerControl) -> None:
        """Save only where a run can be taken up again exactly: between two batches of rollouts."""
        is_due = control.should_save or self._save_is_due
        is_last = state.global_step >= state.max_steps or control.should_training_stop
        control.should_save = is_due and (self._may_save() or is_last) and self.stopped is None
        self._save_is_due = is_due and not control.should_save
