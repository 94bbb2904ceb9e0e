"""The training loop: rollouts, advantages, gradient, guards, update.

    rollouts    play a batch of groups with the current weights      (batch_sampling, generation)
    advantages  estimate them from the rewards of the groups         (advantages)
    gradient    of the loss of the batch                             (losses, learner)
    guards      decide whether to make the update, or to roll back   (training.guards)
    update      AdamW on float32 weights                             (optimizer)

A step is one update, made or left out. Its metrics are known before the weights move, so what the
guards decide can be done exactly. A checkpoint holds all that decides over what comes next; a run
that was killed goes on from its last one and ends with the same numbers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.reference.advantages import compute_advantages, count_loss_tokens
from adapters.reference.batch_sampling import BatchSampler, PlayedBatch
from adapters.reference.chat import check_template
from adapters.reference.checkpoint import Checkpoints
from adapters.reference.config import ReferenceConfig
from adapters.reference.decoder import check_model
from adapters.reference.distributed import Processes
from adapters.reference.generation import Player, PlaySettings
from adapters.reference.kl_reference import CopiedReference, Reference
from adapters.reference.learner import Learner
from adapters.reference.optimizer import Optimizer, make_ready
from adapters.reference.rollout import Batch
from adapters.training.guards.config import Action
from adapters.training.guards.fault_limit import FaultLimit, TrainingStopped
from adapters.training.guards.guards import Decision, Guards, no_snapshot_message, rollback_message
from adapters.training.models.demonstrations import playable_tasks
from adapters.training.models.low_rank import Adapter
from adapters.training.models.stored_weights import read_weights
from adapters.training.runs.progress import peak_memory
from toolgym.runs.metrics import recorded

OnMetrics = Callable[[int, dict[str, float]], None]
OnRollouts = Callable[[int, list[dict[str, Any]]], None]
IsEnough = Callable[[int, Adapter | None], bool]

_logger = logging.getLogger(__name__)


class ReferenceTrainer:
    """The GRPO trainer of a model, whose weights it updates in place.

    Args:
        model: The policy, on the device to train on; each of several processes moves it to its own.
        tokenizer: With a chat template that renders tools.
        env_id: A registered `ToolEnv`.
        checkpoints: Folder of the run's checkpoints; training resumes from the last one.
        config: The settings.
        env_kwargs: For `gym.make`.
        on_metrics: Called after each step with it and its metrics (`toolgym.runs.metrics`).
        on_rollouts: Called with the first step that learns from a batch and some of its episodes.
        transcripts: The number of episodes of a batch that `on_rollouts` gets.
        is_enough: Asked before each batch, and after the last one, with the updates made so far and
            the adapter that is trained, if one is; training ends where it says so. All processes
            have to be told the same.
        on_save: Called with the folder of each checkpoint before it is complete, to add files.
        kept: Asked when training has ended: the folder with the weights to end with, an adapter's
            where one is trained; None for those of the last step.
        adapter: A `LoraConfig` of peft; then an adapter is trained, in place of all weights, and
            merged into the model when the training ends.

    Attributes:
        held_out: `held_out_accuracy` and `held_out_episodes` of an evaluation after the last step,
            for the guards to see at the next one; alike in all processes. To be set by `is_enough`.

    Raises:
        ConfigurationError: Model, template, environment and settings do not go together.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        env_id: str,
        checkpoints: Path,
        config: ReferenceConfig,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        on_metrics: OnMetrics | None = None,
        on_rollouts: OnRollouts | None = None,
        transcripts: int = 4,
        is_enough: IsEnough = lambda step, adapter: False,
        on_save: Callable[[Path], None] | None = None,
        kept: Callable[[], Path | None] = lambda: None,
        adapter: Any = None,
    ) -> None:
        self.step, self.held_out = 0, dict[str, float]()
        self._config, self._model, self._tokenizer = config, model, tokenizer
        self._processes = Processes()
        make_ready(self._processes.place(model), config)
        player = Player(model, tokenizer, env_id, env_kwargs, play_settings(config))
        tasks = _check_and_list_tasks(player, tokenizer, config)
        self._adapter = None if adapter is None else Adapter(model, adapter, config.seed)
        self._processes.align(parameter.data for parameter in model.parameters())
        self._batch_sampler = BatchSampler(player, tasks, config, self._processes)
        self._learner = Learner(model, self._reference(), config, self._processes)
        self._optimizer = Optimizer(model, config, self._processes)
        self._guards = Guards(config.guards)
        self._faults = FaultLimit(config.steps)
        self._checkpoints = Checkpoints(checkpoints, config.keep, on_save)
        self._saved = 0
        self._on_metrics, self._on_rollouts, self._shown = on_metrics, on_rollouts, transcripts
        self._is_enough, self._kept = is_enough, kept

    def train(self) -> None:
        """Train up to the last step, from the last checkpoint if there is one.

        Raises:
            TrainingStopped: The guards see no way on; the text is their diagnosis.
            EnvironmentFault: The environment keeps failing.
            ConfigurationError: The checkpoint is of another model, other tasks or another seed.
        """
        try:
            self._train()
        finally:
            self._optimizer.close()
        kept = self._kept()
        if self._adapter is not None:
            if kept is not None:
                self._adapter.load(kept)
            self._adapter.merge()
        elif kept is not None:
            read_weights(self._model, kept)

    def _train(self) -> None:
        checkpoints = self._checkpoint_steps()
        if checkpoints:
            self._resume(checkpoints[-1])
        else:
            self._save()
        while not self._is_enough(self.step, self._adapter) and self.step < self._config.steps:
            began = time.perf_counter()
            played = self._batch_sampler.sample(self.step + 1)
            rollout_seconds = time.perf_counter() - began
            self._report_rollouts(played)
            self._update_from(played, rollout_seconds)
            if self.step - self._saved >= self._config.save_every:
                self._save()
        if self._saved < self.step:
            self._save()

    def _reference(self) -> Reference | None:
        """The model as it is now, before any checkpoint is loaded; None where none is needed."""
        if not self._config.loss.beta:
            return None
        if self._adapter is not None:
            return self._adapter
        return CopiedReference(self._model)

    def _update_from(self, played: PlayedBatch, rollout_seconds: float) -> None:
        """Make the updates of one batch."""
        began = time.perf_counter()
        batch = Batch.of(played.rollouts, played.in_loss)
        old_log_probs = self._learner.old_log_probs(batch)
        reference = self._learner.reference_log_probs(batch)
        advantages = compute_advantages(batch, reference, self._config, self._processes)
        metrics = {**played.metrics, "rollout_seconds": rollout_seconds}
        for _ in range(min(self._config.updates_per_batch, self._config.steps - self.step)):
            self.step += 1
            norm, update_metrics = self._gradient(batch, advantages, old_log_probs, reference)
            metrics |= update_metrics
            decision = self._guards.observe(self.step, metrics | self.held_out)
            self.held_out = {}
            rate = self._optimizer.rate() * decision.learning_rate_scale
            self._apply(decision, rate, norm)
            seconds, began = time.perf_counter() - began, time.perf_counter()
            metrics |= {"learning_rate": rate, "update_seconds": seconds}
            self._report_metrics(metrics | self._guards.metrics())
            if decision.action is Action.STOP:
                raise TrainingStopped(self.step, decision.diagnosis)
            if decision.action is Action.ROLL_BACK:
                return self._roll_back(decision.reasons)
            metrics = {}

    def _gradient(
        self,
        batch: Batch,
        advantages: Tensor,
        old_log_probs: Tensor | None,
        reference: Tensor | None,
    ) -> tuple[Tensor, dict[str, float]]:
        """Compute the gradient of a batch: its norm, and the metrics of the coming update."""
        loss_metrics = self._learner.accumulate(batch, advantages, old_log_probs, reference)
        norm, broken = self._optimizer.gradient()
        return norm, {
            **loss_metrics,
            "grad_norm": float(norm),
            **self._processes.sum_of({"learnt_tokens": count_loss_tokens(batch)}),
            "nonfinite_gradients": float(broken),
            "nonfinite_weights": float(self._optimizer.nonfinite_weights()),
        }

    def _apply(self, decision: Decision, rate: float, norm: Tensor) -> None:
        if decision.update:
            self._optimizer.step(rate, norm)
        else:
            self._optimizer.discard()
        self._log(*decision.log_lines)

    def _log(self, *lines: str) -> None:
        for line in lines if self._processes.is_main else ():
            _logger.warning("%s", line)

    def _roll_back(self, reasons: Sequence[str] = ()) -> None:
        """Restore weights, optimizer and schedule of the last healthy checkpoint.

        Steps, tasks and PyTorch's random numbers go on: rollouts are sampled by the number of their
        step, so those that led here are not sampled again.

        Raises:
            TrainingStopped: There is none.
        """
        place = self._guards.choose_snapshot(self._checkpoint_steps())
        if place is None:
            cure = "Lower save_every or raise keep, or begin again with a longer warm-up."
            raise TrainingStopped(self.step, no_snapshot_message(self.step, reasons, cure))
        self._load(place, self._checkpoints.load_state(place))
        self._log(rollback_message(self.step, place))

    def _report_rollouts(self, played: PlayedBatch) -> None:
        faults = self._processes.gather([rollout.fault for rollout in played.sampled])
        messages = [fault for fault in faults if fault]
        latest = messages[-1] if messages else ""
        self._faults.note(self.step + 1, len(faults), len(messages), latest)
        if self._on_rollouts is not None and self._processes.is_main:
            episodes = [r.episode for r in played.rollouts[: self._shown]]
            transcripts = [episode.to_json() for episode in episodes if episode is not None]
            self._on_rollouts(self.step + 1, transcripts)

    def _report_metrics(self, metrics: Mapping[str, float]) -> None:
        """Report the metrics of a step, without shares of nothing."""
        if self._on_metrics is not None and self._processes.is_main:
            with_memory = {**metrics, "peak_memory": peak_memory(self._model.device)}
            self._on_metrics(self.step, recorded(with_memory))

    def _save(self) -> None:
        state = {
            "gatherer": self._batch_sampler.state_dict(),
            "guards": self._guards.state_dict(),
            "faults": self._faults.state_dict(),
        }
        optimizer = self._optimizer.state_dict()
        state["updates"] = optimizer["updates"]
        if self._processes.is_main:
            sound = self._guards.healthy_steps
            trained, tensors = self._adapter or self._model, optimizer["tensors"]
            self._checkpoints.save(self.step, trained, self._tokenizer, tensors, state, sound)
        self._processes.wait()
        self._saved = self.step

    def _load(self, step: int, state: Mapping[str, Any]) -> None:
        """Weights and optimizer of a checkpoint."""
        tensors = self._checkpoints.load_weights(step, self._adapter or self._model)
        self._optimizer.load_state_dict({"tensors": tensors, "updates": state["updates"]})

    def _checkpoint_steps(self) -> list[int]:
        """The steps that have one, as process 0 sees them before it writes another."""
        return self._processes.gather([self._checkpoints.steps()])[0]

    def _resume(self, step: int) -> None:
        state = self._checkpoints.load_state(step)
        self._batch_sampler.load_state_dict(state["gatherer"])
        self._guards.load_state_dict(state["guards"])
        self._faults.load_state_dict(state["faults"])
        self._load(step, state)
        self._checkpoints.load_random(step)
        self.step = self._saved = step


def play_settings(config: ReferenceConfig) -> PlaySettings:
    """The generation settings of a trainer with this config."""
    return PlaySettings(
        temperature=config.temperature,
        max_tokens=config.max_completion_length,
        at_once=config.at_once,
        workers=config.workers,
    )


def _check_and_list_tasks(
    player: Player, tokenizer: PreTrainedTokenizerBase, config: ReferenceConfig
) -> list[str]:
    """The tasks to draw from, after checks of the model and its chat template."""
    ids = list(playable_tasks(player.env.tasks, None, config.seed).ids)
    player.env.reset(options={"task_id": ids[0]})
    check_model(player.model)
    check_template(player.model, tokenizer, player.env)
    return ids
