"""Callbacks for TRL's trainers: guards for every update, and a stop when environments fail.

    on_pre_optimizer_step: Measure the gradient, pass it to the guards, and clip it or skip the
        update.
    on_step_end: Roll back or stop if the guards decide so; otherwise take a snapshot.
    on_log: Keep the metrics that TRL logs, for the guards at the next step.

The state of the guards is saved in `trainer_state.json` in the checkpoints of transformers'
`Trainer`.
"""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Any, Final

import torch
from accelerate import PartialState
from torch import nn
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from adapters.training.guards.config import Action, GuardConfig
from adapters.training.guards.fault_limit import FaultLimit, TrainingStopped
from adapters.training.guards.guards import Decision, Guards, no_snapshot_message, rollback_message
from adapters.training.runs.progress import peak_memory
from adapters.trl.config import check_guards, guard_config
from adapters.trl.environment import RolloutEnvironment
from adapters.trl.rollouts import PREFIX, Rollouts
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.runs.metrics import broken, recorded

STATE: Final = "toolgym"
_CLIP_AT: Final = "_toolgym_max_grad_norm"
_FROM_TRL: Final = {
    "loss": "loss",
    "kl": "kl",
    "learning_rate": "learning_rate",
    "policy_loss": "policy_loss",
    "clip_ratio/low_mean": "clip_low",
    "clip_ratio/high_mean": "clip_high",
    "cispo_clip_ratio": "clip_high",
}
"""TRL's names of the metrics of an update, with the names of toolgym."""
_DIFFERENT: Final = 0.02  # nats per token
_logger = logging.getLogger(__name__)

OnStep = Callable[[int, dict[str, float], list[EpisodeRecord]], None]


class GuardCallback(TrainerCallback):
    """Callback that applies the guards to every update of a `GRPOTrainer`.

    Before each update, the guards check the metrics of the rollouts and the gradient of the step.
    Metrics that TRL logs after an update, such as the KL divergence, reach the guards at the next
    step, so the guards require `logging_steps=1`. In each step, the callback sets `max_grad_norm`
    of the trainer's config to 0 and clips the gradient itself, to measure the norm before clipping.

    An update is skipped by setting gradients to None, since momentum would change the weights even
    with gradients of 0. A roll-back restores weights and optimizer from a snapshot in
    `output_dir/snapshots`. Remaining updates from rollouts that were sampled before the roll-back
    are skipped. The learning-rate schedule continues after skipped updates and roll-backs, since it
    counts steps.

    Guards that do more than warn require the complete weights in each process. With FSDP or
    DeepSpeed, pass `guards={"only_warn": True}`.

    Args:
        rollouts: The trainer's `rollout_func`.
        guards: A `GuardConfig`, or a mapping of its fields.
        snapshot_steps: Steps between snapshots. The latest two snapshots and the one before the
            first step are kept. Each snapshot is as large as a checkpoint.
        on_step: Function that is called in process 0 after each step with its number, its metrics
            (`toolgym.runs.metrics`) and the episodes that process 0 played for the step.

    Attributes:
        held_out: `held_out_accuracy` and `held_out_episodes` of an evaluation after the last step,
            which the guards check at the next step. Set this attribute to the same values in all
            processes.

    Raises:
        ConfigurationError: If a setting of the guards is invalid.
        TrainingStopped: Raised by `trainer.train()` if the guards end the run.
    """

    def __init__(
        self,
        rollouts: Rollouts,
        guards: GuardConfig | Mapping[str, Any] | None = None,
        *,
        snapshot_steps: int = 10,
        on_step: OnStep | None = None,
    ) -> None:
        if snapshot_steps < 1:
            raise ConfigurationError(f"snapshot_steps must be at least 1; got {snapshot_steps}.")
        config = guard_config(guards or {})
        self.guards = Guards(config)
        self._fresh = {"guards": self.guards.state_dict(), "rollouts": {"refills": None}}
        self.held_out: dict[str, float] = {}
        self._acts, self._snapshot_steps = not config.only_warn, snapshot_steps
        self._rollouts, self._on_step = rollouts, on_step
        self._decision: Decision
        self._snapshots: Snapshots | None = None
        self._clip_at = 0.0
        self._rates: list[float] = []
        self._is_stale = False  # the rollouts are of weights that were rolled back
        self._metrics: dict[str, float] = {}
        self._logged: dict[str, float] = {}
        self._ended = 0.0
        self._stopped: TrainingStopped | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the state of a checkpoint and take the first snapshot."""
        check_guards(args, acts=self._acts)
        rows, groups = kwargs["train_dataloader"].dataset, args.generation_batch_size
        groups //= args.num_generations
        if isinstance(rows, Sized) and len(rows) < groups:
            raise ConfigurationError(
                f"the data set has {len(rows)} rows, but a generation batch needs {groups}"
                f" ({args.generation_batch_size} rollouts in groups of {args.num_generations}), so"
                " TRL would train zero steps. Make more rows with `rollouts.dataset(n)`."
            )
        saved: Any = state.stateful_callbacks.get(STATE) or self._fresh
        self.guards.load_state_dict(saved["guards"])
        self._rollouts.load_state_dict(saved["rollouts"])
        self._stopped = None
        self._is_stale, self._metrics, self._logged = False, {}, {}
        if self._acts:
            folder = Path(str(args.output_dir)) / "snapshots"
            self._snapshots = Snapshots(folder, kwargs["model"], kwargs["optimizer"])
            self._snapshots.begin(state.global_step)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Prevent the trainer from clipping the gradient before it is measured."""
        # An exception may end a step before `on_step_end`, and the config may be used again.
        self._clip_at = vars(args).setdefault(_CLIP_AT, args.max_grad_norm) or 0.0
        args.max_grad_norm = 0.0

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Pass the metrics to the guards, and skip the update or clip its gradient."""
        step, model = state.global_step + 1, kwargs["model"]
        played = self._rollouts.take_metrics()
        if not self._rollouts.ended:
            raise ConfigurationError(
                "the guards see no rollouts: pass the same object as rollout_func=rollouts and"
                " GuardCallback(rollouts)."
            )
        if played:
            self._is_stale = False
        gradient = _gradient_metrics(model)
        if args.fp16:  # the scaler of fp16 skips steps whose gradient is not finite
            gradient = {"grad_norm": gradient["grad_norm"]} if not broken(gradient) else {}
        self._metrics = played | gradient
        seen = {**self._metrics, **self._logged, **self.held_out}
        decision = self._decision = self.guards.observe(step, seen)
        self._logged, self.held_out = {}, {}
        for line in decision.log_lines if state.is_world_process_zero else ():
            _logger.warning("%s", line)
        self._rollouts.logged_with_next = self.guards.metrics()
        if not decision.update or self._is_stale:
            model.zero_grad(set_to_none=True)
            return
        if self._clip_at > 0:
            nn.utils.clip_grad_norm_(model.parameters(), self._clip_at)
        if decision.learning_rate_scale != 1:
            groups = kwargs["optimizer"].param_groups
            self._rates = [group["lr"] for group in groups]
            for group in groups:
                group["lr"] *= decision.learning_rate_scale

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Restore the learning rate of the schedule."""
        for group, rate in zip(kwargs["optimizer"].param_groups, self._rates, strict=False):
            group["lr"] = rate
        self._rates = []

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Roll back, stop or take a snapshot, and save the state for the next checkpoint."""
        args.max_grad_norm = vars(args).pop(_CLIP_AT)
        now = time.perf_counter()
        self._metrics["update_seconds"] = now - max(self._ended, self._rollouts.ended)
        self._metrics["peak_memory"] = peak_memory(kwargs["model"].device)
        self._ended = now
        decision, snapshots, step = self._decision, self._snapshots, state.global_step
        if decision.action is Action.STOP:
            self._stop(step, decision.diagnosis, control)
        elif snapshots is not None and decision.action is Action.ROLL_BACK:
            place = self.guards.choose_snapshot(snapshots.steps())
            if place is None:
                cure = "Lower snapshot_steps, or start again with more supervised steps."
                self._stop(step, no_snapshot_message(step, decision.reasons, cure), control)
            else:
                snapshots.restore(place)
                self._is_stale = True
                if state.is_world_process_zero:
                    _logger.warning("%s", rollback_message(step, place))
        elif snapshots is not None and step % self._snapshot_steps == 0:
            snapshots.take(step)
        own: Any = {"guards": self.guards.state_dict(), "rollouts": self._rollouts.state_dict()}
        state.stateful_callbacks[STATE] = own

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the metrics of the update for the guards and report the step."""
        if not logs or "loss" not in logs:
            return
        update = {ours: logs[theirs] for theirs, ours in _FROM_TRL.items() if theirs in logs}
        self._logged = {
            name: update[name] for name in ("loss", "kl") if update.get(name) is not None
        }
        metrics = {**update, **self._metrics, **self.guards.metrics()}
        if "learning_rate" in metrics:
            metrics["learning_rate"] *= self.guards.learning_rate_scale
        if state.global_step == 1 and self._metrics.get("faults") == 0:
            _check_first_log(logs)
        if self._on_step is not None and state.is_world_process_zero:
            episodes = self._rollouts.episodes if "reward" in metrics else []
            self._on_step(state.global_step, recorded(metrics), episodes)
        self._metrics = {}

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Delete the snapshots, unless the guards stopped the run.

        Raises:
            TrainingStopped: If the guards ended the run.
        """
        if self._stopped is not None:
            raise self._stopped
        if self._snapshots is not None:
            self._snapshots.clear()

    def _stop(self, step: int, diagnosis: str, control: TrainerControl) -> None:
        self._stopped = TrainingStopped(step, diagnosis)
        control.should_training_stop = control.should_log = True
        control.should_save = False


def _gradient_metrics(model: nn.Module) -> dict[str, float]:
    """Return the norm of the gradient, and the numbers of nonfinite gradients and weights."""
    trained = [each for each in model.parameters() if each.requires_grad]
    norms = [torch.linalg.vector_norm(p.grad.float()) for p in trained if p.grad is not None]
    if not norms:
        return {"grad_norm": 0.0}
    device = norms[0].device  # a model may be on several devices
    each = torch.stack([norm.to(device) for norm in norms])
    finite = torch.stack([p.detach().isfinite().all().to(device) for p in trained])
    return {
        "grad_norm": torch.linalg.vector_norm(each).item(),
        "nonfinite_gradients": float((~each.isfinite()).sum()),
        "nonfinite_weights": float((~finite).sum()),
    }


def _check_first_log(logs: Mapping[str, Any]) -> None:
    """Check the reward and the KL divergence of the first batch in TRL's log.

    Raises:
        ConfigurationError: If the reward is not the mean score of the rollouts.
    """
    if (logs.get("kl") or 0.0) > _DIFFERENT:
        _logger.warning(
            "The KL divergence is %.3g nats per token before the first update, so the reference"
            " model differs from the policy. TRL loads the reference by model.config.name_or_path."
            " If the model was changed in memory, save it and load it from that folder.",
            logs["kl"],
        )
    reward, score = logs.get("reward"), logs.get(f"{PREFIX}score")
    if reward is None or score is None or math.isclose(reward, score, rel_tol=1e-3, abs_tol=1e-4):
        return
    raise ConfigurationError(
        f"TRL trained on a mean reward of {reward:.4g}, but the mean score of the environment is"
        f" {score:.4g}. Pass only reward_funcs=rollouts.score, without reward_weights."
    )


class Snapshots:
    """Snapshots of trained weights and optimizer, to which guards roll back.

    The snapshots are files, so that a resumed run can use them. Process 0 writes the files, and all
    processes read them.

    Args:
        folder: A folder that all processes can access.
        model: The model.
        optimizer: Optimizer of the model.
    """

    _KEPT: Final = 2

    def __init__(self, folder: Path, model: nn.Module, optimizer: Any) -> None:
        self._folder, self._model, self._optimizer = folder, model, optimizer
        self._process = PartialState()

    def begin(self, step: int) -> None:
        """Delete the snapshots of steps after the given step, and take a new snapshot."""
        if self._process.is_main_process:
            for other in [each for each in self.steps() if each > step or not step]:
                self._path(other).unlink()
        self.take(step)

    def steps(self) -> list[int]:
        """Return the steps after which a snapshot was taken; 0 is the one before the first step."""
        names = (path.stem for path in self._folder.glob("step-*.pt"))
        return sorted(int(name.removeprefix("step-")) for name in names)

    def take(self, step: int) -> None:
        """Write a snapshot atomically and delete old ones."""
        if self._process.is_main_process:
            self._folder.mkdir(parents=True, exist_ok=True)
            new = self._folder / "new"
            trained = {n: p.detach() for n, p in self._trained().items()}
            torch.save({"weights": trained, "optimizer": self._optimizer.state_dict()}, new)
            new.replace(self._path(step))
            for old in self.steps()[1 : -self._KEPT]:  # the first snapshot is kept
                self._path(old).unlink()
        self._process.wait_for_everyone()

    def restore(self, step: int) -> None:
        """Load weights and optimizer from the snapshot of a step. Learning rates do not change."""
        saved = torch.load(self._path(step), map_location="cpu", weights_only=True)
        with torch.no_grad():
            for name, parameter in self._trained().items():
                parameter.copy_(saved["weights"][name])
        rates = [group["lr"] for group in self._optimizer.param_groups]
        self._optimizer.load_state_dict(saved["optimizer"])
        for group, rate in zip(self._optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def clear(self) -> None:
        """Delete all snapshots."""
        if self._process.is_main_process:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process.wait_for_everyone()

    def _path(self, step: int) -> Path:
        return self._folder / f"step-{step}.pt"

    def _trained(self) -> dict[str, nn.Parameter]:
        return {name: p for name, p in self._model.named_parameters() if p.requires_grad}


class FaultStop(TrainerCallback):
    """Callback that ends a run when too many rollouts of an `environment_factory` fail.

    The run ends with `EnvironmentFault`. TRL turns an exception in a tool into a message to the
    model, so faults are counted in the environment class and the count is checked after each step.
    `Rollouts` does not need this callback.

    Args:
        environment: The class that `environment_factory` returned.
        limit: Maximum share of rollouts that may fail.

    >>> trainer = GRPOTrainer(..., environment_factory=environment,
    ...                       callbacks=[FaultStop(environment)])  # doctest: +SKIP
    """

    def __init__(self, environment: type[RolloutEnvironment], limit: float = 0.2) -> None:
        self._tally, self._share = environment._tally, limit
        self._seen = (self._tally.rollouts, len(self._tally.faults))
        self._limit: FaultLimit

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start counting."""
        self._limit = FaultLimit(state.max_steps, self._share)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count the rollouts and faults of the step.

        Raises:
            EnvironmentFault: If the share of faults is above the limit.
        """
        (played, failed), tally = self._seen, self._tally
        self._seen = (tally.rollouts, len(tally.faults))
        self._limit.note(state.global_step, tally.rollouts - played, tally.faults[failed:])
