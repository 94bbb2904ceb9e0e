"""`StableGRPOTrainer`: TRL's GRPO with dynamic sampling, bounded advantages and guards.

    a generation batch   is played, its dead groups replaced (`dynamic_sampling`), its advantages
                         estimated anew
    an update            is measured while it can still be left out (`step_metrics`), judged by the
                         guards, made or not made (`callbacks`)
    a checkpoint         holds the guards' memory and the state of dynamic sampling, and falls
                         between generation batches, so that a resumed run is the same run

Each part wraps a method of TRL's and calls it. What TRL computes of a loss stays TRL's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import GRPOConfig

from adapters.training.algorithms import advantages
from adapters.training.algorithms.dynamic_sampling import Tally, TaskStream
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.guards.guards import Guards
from adapters.training.runs.progress import peak_memory
from adapters.trl import dynamic_sampling, settings
from adapters.trl.callbacks import GuardCallback
from adapters.trl.config import TRLS_OWN, StableGRPOConfig
from adapters.trl.datasets import training_dataset
from adapters.trl.dynamic_sampling import (
    PlayedBatch,
    Rows,
    StepBatch,
    StepSource,
    fill_step,
    single_batch,
)
from adapters.trl.environment import environment_factory
from adapters.trl.step_metrics import (
    MEASURED,
    PREFIX,
    PendingMetrics,
    StepNumbers,
    means,
    step_metrics,
)
from adapters.trl.tool_trainer import ToolGRPOTrainer
from toolgym.errors import ConfigurationError
from toolgym.runs.metrics import finite, recorded


class StableGRPOTrainer(ToolGRPOTrainer):
    """`ToolGRPOTrainer` with dynamic sampling, bounded advantages, and guards over every update.

    Args:
        model: The policy, or its path or hub id.
        args: A `StableGRPOConfig`; all safety is chosen there.
        kwargs: Those of `ToolGRPOTrainer`.

    Attributes:
        held_out: `held_out_accuracy` and `held_out_episodes` of an evaluation after the last step,
            for the guards to see at the next one; alike in all processes. To be set by a callback.

    Raises:
        ConfigurationError: The config is another one, or does not fit data set or processes.
    """

    def __init__(self, model: Any, *, args: StableGRPOConfig, **kwargs: Any) -> None:
        if not isinstance(args, StableGRPOConfig):
            raise ConfigurationError(
                f"StableGRPOTrainer takes a StableGRPOConfig, got a {type(args).__name__}: make one"
                " with the same arguments, or train with ToolGRPOTrainer."
            )
        super().__init__(model, args=args, **kwargs)
        self._refills = self._refill_stream(args) if args.dynamic_sampling else None
        self._numbers = StepNumbers()
        self._pending = PendingMetrics(self._metrics_of)
        self._unlogged: list[dict[str, float]] = []
        self._tokens = self._seconds = 0.0
        self._sampler: Any = None
        self._is_first_draw = True
        self.held_out: dict[str, float] = {}
        self._guard_callback = GuardCallback(
            Guards(args.guard_config()),
            self._collect_metrics,
            self._discard_rollouts,
            self._is_between_batches,
            self._catch_up,
            stateful={"refills": self._refills} if self._refills is not None else {},
            acts=not args.only_warns,
            snapshot_steps=args.snapshot_steps,
            snapshot_keep=args.snapshot_keep,
            wait=self.accelerator.wait_for_everyone,
        )
        self.add_callback(self._guard_callback)

    def _refill_stream(self, args: StableGRPOConfig) -> TaskStream:
        columns = getattr(self.train_dataset, "column_names", None) or ()
        if not hasattr(self.train_dataset, "__len__") or not {"task_id", "seed"} & set(columns):
            raise ConfigurationError(
                "dynamic sampling draws tasks by their number, so it needs a data set with a length"
                " and a column `task_id` or `seed`: make it with training_dataset, or set"
                " dynamic_sampling=False."
            )
        return TaskStream(
            len(self.train_dataset),
            seed=args.seed,
            name="refill",
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
        )

    # A generation batch ---------------------------------------------------------------------------

    def _generate_and_score_completions(self, inputs: Rows) -> dict[str, Any]:
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        began = time.perf_counter()
        self._is_first_draw = True
        source = StepSource(
            self._play_and_mask,
            self._rows_of,
            self._exchange,
            self.num_generations,
            self._pad_token(),
        )
        if self._refills is not None:
            step = fill_step(source, inputs, self.args.max_draws, self._refills)
        else:
            step = single_batch(source, inputs)
        batch = self._with_advantages(step)
        sampling = self._sum_over_processes(step.sampling)
        self._note("train", self._metrics_of(step.draws) | sampling)
        self._pending.add(step.draws, {**sampling, "rollout_seconds": time.perf_counter() - began})
        return batch

    def _play_and_mask(self, inputs: Rows) -> PlayedBatch:
        draw = self._play_rows(inputs)
        if self._is_first_draw:
            self._report_rollouts()
        self._is_first_draw = False
        left_out = draw.left_out(unfinished=self.mask_truncated_completions)
        batch = dynamic_sampling.mask_rows(dynamic_sampling.with_tool_mask(draw.batch), left_out)
        return PlayedBatch(batch, draw.figures, draw.rewards, draw.first)

    def _rows_of(self, tasks: Sequence[int]) -> Rows:
        rows = [self.train_dataset[task] for task in tasks]
        return [dict(row) for row in rows for _ in range(self.num_generations)]

    def _exchange(self, tally: Tally) -> list[Sequence[int]]:
        return gather_object([tuple(tally)])  # type: ignore[no-any-return]

    def _sum_over_processes(self, own: dict[str, float]) -> dict[str, float]:
        """Metrics of dynamic sampling over all processes; all took equally many rounds."""
        gathered: list[dict[str, float]] = gather_object([own])
        return {
            name: number if name == "sampling_rounds" else sum(each[name] for each in gathered)
            for name, number in own.items()
        }

    def _with_advantages(self, step: StepBatch) -> dict[str, Any]:
        """The batch with its advantages, and its tokens counted anew."""
        batch, limit = dict(step.batch), self.args.advantage_clip
        if self.args.estimator != TRLS_OWN:
            batch["advantages"] = self._advantages(batch, step.rewards)
        elif limit is not None:
            batch["advantages"] = batch["advantages"].clamp(min=-limit, max=limit)
        batch["num_items_in_batch"] = self.accelerator.gather(
            dynamic_sampling.loss_tokens(batch)
        ).sum()
        return batch

    def _advantages(self, batch: dict[str, Any], own_rewards: Sequence[float]) -> Tensor:
        """Advantages of this process, estimated over the rollouts of all; in double precision.

        A group that is left out of the loss as a whole takes no part in the statistics. A rollout
        that alone is left out is still one that the others did better than, or worse.
        """
        learnt = dynamic_sampling.learnt_rows(batch).view(-1, self.num_generations).any(dim=1)
        counts = learnt.repeat_interleave(self.num_generations).cpu()
        own = torch.tensor(own_rewards, dtype=torch.float64, device="cpu")
        own = own.masked_fill(~counts, math.nan)
        rewards = torch.tensor(gather_object(own.tolist()), dtype=torch.float64, device="cpu")
        groups = torch.arange(len(rewards), device="cpu") // self.num_generations
        gathered = advantages.advantages(
            self.args.estimator, rewards, groups, limit=self.args.advantage_clip
        )
        first = self.accelerator.process_index * len(own)
        return gathered[first : first + len(own)].to(batch["advantages"])

    def _pad_token(self) -> int:
        return int(self._tokenizer.pad_token_id)

    # An update ------------------------------------------------------------------------------------

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        loss: Tensor = super()._compute_loss(model, inputs)
        if self.model.training:
            tokens = self.accelerator.reduce(
                dynamic_sampling.loss_tokens(inputs).float(), reduction="sum"
            )
            self._tokens = float(tokens)
        return loss

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Add a micro-batch's gradient, and record its metrics."""
        began = time.perf_counter()
        loss: Tensor = super().training_step(*args, **kwargs)
        mean = self.accelerator.gather(loss.detach().reshape(1)).mean().item()
        self._numbers.note_micro_batch(mean, self._tokens, self._metrics["train"])
        if self.accelerator.sync_gradients and self._can_measure_gradients():
            trained = [p for p in self.model.parameters() if p.requires_grad]
            scaler = self.accelerator.scaler
            scale = scaler.get_scale() if scaler else 1.0
            self._numbers.note_gradient(trained, self._gather, scale)
        self._seconds += time.perf_counter() - began
        return loss

    def _can_measure_gradients(self) -> bool:
        """Whether weights have gradients of their own; DeepSpeed and FSDP1 keep flat ones."""
        is_flat = self.is_fsdp_enabled and not self.accelerator.is_fsdp2
        return not (self.is_deepspeed_enabled or is_flat)

    def _gather(self, tensor: Tensor) -> Tensor:
        on_device = tensor.to(self.accelerator.device)  # that of an offloaded shard is the CPU
        gathered: Tensor = self.accelerator.gather(on_device)
        return gathered

    def _collect_metrics(self) -> dict[str, float]:
        """The step's metrics for the guards; of rollouts only where there are new ones."""
        played, update = self._pending.pop(), self._numbers.metrics()
        if self.accelerator.scaler is not None:  # it makes such steps smaller by itself
            update = {k: v for k, v in update.items() if k in finite(update)}
        learnt = self._seconds - played.get("rollout_seconds", 0.0)
        clock = {"update_seconds": learnt, "peak_memory": peak_memory(self.accelerator.device)}
        self._unlogged.append({**played, **update, **clock})
        self._numbers, self._seconds = StepNumbers(), 0.0
        held_out, self.held_out = self.held_out, {}
        return {**played, **update, **held_out}

    def _discard_rollouts(self) -> None:
        self._buffered_inputs = None
        if self.use_vllm:
            self._last_loaded_step = -1

    def _is_between_batches(self) -> bool:
        every: int = self.args.steps_per_generation * self.num_iterations
        return bool(self._step % every == 0)

    # A run ----------------------------------------------------------------------------------------

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        self._sampler = super()._get_train_sampler(dataset)
        return self._sampler

    def _catch_up(self, epoch: float) -> None:
        """Bring the order of tasks to the epoch that a checkpoint lies in.

        A sampler that was made anew would deal the first epoch's order again.
        """
        if self._sampler is not None and self._sampler.shuffle:
            for _ in range(int(epoch)):
                torch.randperm(self._sampler.num_samples, generator=self._sampler.generator)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train, as TRL does.

        Raises:
            TrainingStopped: The guards ended the run; its text says why and what to change.
        """
        outcome = super().train(*args, **kwargs)
        if self._guard_callback.stopped is not None:
            raise TrainingStopped(*self._guard_callback.stopped)
        return outcome

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does, with the guards' metrics, for callbacks and dashboards too."""
        if "loss" in logs:
            numbers = self._guard_callback.guards.metrics()
            logs.update({PREFIX + name: number for name, number in numbers.items()})
        super().log(logs, start_time)

    def _metrics_of_log(self, logs: dict[str, float]) -> dict[str, float]:
        """The step's metrics; those measured here replace those that TRL cleaned for display."""
        steps, self._unlogged = self._unlogged, []
        trls = {k: v for k, v in step_metrics(logs).items() if k not in MEASURED}
        metrics = {**trls, **means(steps), **self._guard_callback.guards.metrics()}
        if "learning_rate" in metrics:
            metrics["learning_rate"] *= self._guard_callback.guards.learning_rate_scale
        return recorded(metrics)


def build_trainer(
    model: PreTrainedModel | str,
    tokenizer: PreTrainedTokenizerBase,
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    config: GRPOConfig | Mapping[str, Any],
    dataset: Any = None,
    eval_env_kwargs: Mapping[str, Any] | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    trainer_class: type[ToolGRPOTrainer] | None = None,
    **keywords: Any,
) -> ToolGRPOTrainer:
    """A complete trainer for an environment; call its `train()`.

    Args:
        model: The policy, or its path or hub id.
        tokenizer: With a chat template that renders tools; its padding must not be its end of turn.
        env_id: A registered `ToolEnv`.
        env_kwargs: For `gym.make`.
        config: A `StableGRPOConfig`, or a dict of its arguments; or TRL's `GRPOConfig`.
        dataset: As `training_dataset` makes it; None makes one of as many tasks as the steps take.
        eval_env_kwargs: For `gym.make` where `eval_dataset` is of another split, or is judged in
            another way; None: as in training.
        callbacks: More callbacks; `FaultStop` is always there.
        trainer_class: A subclass of `ToolGRPOTrainer`; None: the one that fits the config.
        keywords: Of `ToolGRPOTrainer` (`control`, `on_metrics`, `on_rollouts`, `reference`) or of
            `GRPOTrainer`, such as `peft_config` for LoRA, or `eval_dataset`.

    Raises:
        ConfigurationError: Something would train nothing, or something else, or is known to fail;
            the message says what.
    """
    options = dict(env_kwargs or {})
    chosen = trainer_class or _trainer_for(config)
    config_class = StableGRPOConfig if issubclass(chosen, StableGRPOTrainer) else GRPOConfig
    environment = environment_factory(env_id, **options)
    made = settings.grpo_config(config, environment._sample().step_limit, config_class)
    if eval_env_kwargs is not None:
        keywords["evaluation_factory"] = environment_factory(env_id, **eval_env_kwargs)
    if dataset is None:
        dataset = training_dataset(env_id, n=_tasks_needed(made), seed=made.seed, **options)
    return chosen(
        model=model,
        processing_class=tokenizer,
        args=made,
        train_dataset=dataset,
        environment_factory=environment,
        callbacks=list(callbacks),
        **keywords,
    )


def _tasks_needed(config: GRPOConfig) -> int | None:
    """The number of tasks that all steps together take at most; None where epochs count.

    Each task of a data set is verified, which takes milliseconds.
    """
    if config.max_steps < 1:
        return None
    rollouts = config.train_batch_size * config.gradient_accumulation_steps * config.world_size
    groups = max(rollouts, config.generation_batch_size) // config.num_generations
    return int(config.max_steps * groups)


def _trainer_for(config: GRPOConfig | Mapping[str, Any]) -> type[ToolGRPOTrainer]:
    is_trls_own = isinstance(config, GRPOConfig) and not isinstance(config, StableGRPOConfig)
    return ToolGRPOTrainer if is_trls_own else StableGRPOTrainer
