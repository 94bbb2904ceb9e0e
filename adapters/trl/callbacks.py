"""Callbacks of TRL trainers: guards with the snapshots they roll back to, and the fault limit.

Their state is in the checkpoints of transformers' `Trainer`: `trainer_state.json` has room for the
states of callbacks, and is the last file that a checkpoint gets. Where it is whole, all of it is
there, and a checkpoint without it is passed over. What is put there is JSON.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from adapters.training.guards.config import Action
from adapters.training.guards.fault_limit import FaultLimit
from adapters.training.guards.guards import Decision, Guards, no_snapshot_message, rollback_message
from adapters.trl.environment import RolloutEnvironment
from adapters.trl.sharding import is_sharded, joined_state, own_part, own_state

_NAME = re.compile(r"step-(\d+)(\.\d+-of-\d+)?\.pt")


class Snapshots:
    """The snapshot files of one run: the states that its guards roll it back to.

    A snapshot has what an update changes and nothing else: the weights that are trained (of LoRA,
    the adapter), the optimizer's state and the schedule's. They are files, since a run that was
    killed and resumed must find the same ones; those that are later than the checkpoint it resumes
    from are deleted, and old ones only when a checkpoint has made sure that they are not needed any
    more. The first one, of the model as it came, is always kept.

    Of weights that are sharded (FSDP2) each process writes and reads its own shards, and a snapshot
    is there when the files of all processes are. A run that is resumed by another number of
    processes cannot read them; they are deleted, and a new one is taken where it resumes.

    Args:
        folder: Where they lie; every process has to see it.
        model: The model, unwrapped.
        scheduler: The learning rate's schedule.
        writes: Whether this process deletes, and writes what all have alike; one of them does.
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
        self._is_sharded = is_sharded(self._trained().values())

    def steps(self) -> list[int]:
        """The steps after which a snapshot was taken, 0 for the one before the first step."""
        names = {path.name for path in self._files()}
        steps = {int(match.group(1)) for name in names if (match := _NAME.fullmatch(name))}
        return sorted(step for step in steps if names.issuperset(self._names(step)))

    def take(self, step: int) -> None:
        """Write the snapshot of a step, whole or not at all."""
        if self._writes or self._is_sharded:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._path(step)
            fresh = path.with_name(f".{path.stem}.new")
            torch.save(self._now(), fresh)
            os.replace(fresh, path)
        self._wait()

    def restore(self, step: int) -> None:
        """Load weights, optimizer and schedule from the snapshot of a step."""
        snapshot = torch.load(self._path(step), map_location="cpu", weights_only=True)
        with torch.no_grad():
            for name, parameter in self._trained().items():
                part = own_part(parameter)
                part.copy_(snapshot["weights"][name].view_as(part))  # copy_ alone would broadcast
        self._optimizer.load_state_dict(joined_state(snapshot["optimizer"], self._optimizer))
        self._scheduler.load_state_dict(snapshot["scheduler"])

    def prune(self, latest: int, upto: int | None = None) -> None:
        """Delete all snapshots but the first and some of the latest.

        Args:
            latest: How many of the latest stay.
            upto: Those of later steps go first; None: there are none.
        """
        if self._writes:
            past = [step for step in self.steps() if upto is None or step <= upto]
            retained = {name for step in {0, *past[-latest:]} for name in self._names(step)}
            for path in self._files():  # also those of a snapshot that was not finished
                if path.name not in retained:
                    path.unlink(missing_ok=True)
        self._wait()

    def clear(self) -> None:
        """Delete all snapshots."""
        if self._writes:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._wait()

    def _files(self) -> list[Path]:
        return [path for path in self._folder.glob("step-*.pt") if _NAME.fullmatch(path.name)]

    def _names(self, step: int) -> list[str]:
        """The files of a snapshot, by process."""
        if not self._is_sharded:
            return [f"step-{step}.pt"]
        processes = dist.get_world_size()
        return [f"step-{step}.{rank}-of-{processes}.pt" for rank in range(processes)]

    def _path(self, step: int) -> Path:
        return self._folder / self._names(step)[dist.get_rank() if self._is_sharded else 0]

    def _trained(self) -> Mapping[str, nn.Parameter]:
        return {name: p for name, p in self._model.named_parameters() if p.requires_grad}

    def _now(self) -> dict[str, Any]:
        weights: dict[str, Tensor] = {
            name: own_part(parameter).cpu() for name, parameter in self._trained().items()
        }
        return {
            "weights": weights,
            "optimizer": own_state(self._optimizer.state_dict()),
            "scheduler": self._scheduler.state_dict(),
        }


def load_state(state: TrainerState, name: str) -> Any:
    """The state under a name in the checkpoint that a run is resumed from; None without one."""
    states: Any = state.stateful_callbacks or {}
    return states.get(name)


def save_state(state: TrainerState, name: str, value: dict[str, Any]) -> None:
    """Put a state under a name into the next checkpoint."""
    states: Any = state.stateful_callbacks or {}
    updated: Any = {**states, name: value}
    state.stateful_callbacks = updated


_STATE: Final = "toolgym-faults"


class FaultStop(TrainerCallback):
    """A callback that ends a run with `EnvironmentFault` when too many rollouts are lost.

    A fault in a tool cannot be raised through TRL, which would make it a message to the model. So
    it is counted where it happens (`environment.FaultTally`), and checked against `FaultLimit`
    after each step.

    Args:
        environment: The class that `environment_factory` returned.
        limit: The share of rollouts that may be lost.

    >>> trainer = GRPOTrainer(..., environment_factory=environment,
    ...                       callbacks=[FaultStop(environment)])  # doctest: +SKIP
    """

    def __init__(self, environment: type[RolloutEnvironment], limit: float = 0.2) -> None:
        self._tally, self._share = environment._tally, limit
        self._seen = (self._tally.rollouts, self._tally.faults)
        self._limit: FaultLimit | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the counts of a checkpoint, if there are any."""
        self._limit = FaultLimit(state.max_steps, self._share)
        counts = load_state(state, _STATE)
        if counts is not None:
            self._limit.load_state_dict(counts)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the step's rollouts and faults, and stop if there are too many.

        Raises:
            EnvironmentFault: The share of faults is above the limit.
        """
        rollouts, faults = self._tally.rollouts, self._tally.faults
        played, lost = rollouts - self._seen[0], faults - self._seen[1]
        self._seen = (rollouts, faults)
        if self._limit is None:
            return
        self._limit.note(state.global_step, played, lost, self._tally.latest)
        save_state(state, _STATE, self._limit.state_dict())


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

        gradient complete -> measured -> observe -> the optimizer moves, or its gradients are None

    A gradient of 0 still moves weights by momentum, so an update is left out by setting gradients
    to None, with which no optimizer touches weight or state, and by putting the schedule back
    afterwards. A lower learning rate is set for the optimizer's step only, so that no schedule
    builds on it. Rolling back restores a snapshot and discards rollouts that were played ahead; the
    order of tasks and PyTorch's random numbers go on, so that the same batch is not sampled again.
    A stop lets the step be logged, saves nothing more, and ends the run.

    Args:
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
