"""The reinforcement learning of a run, done by `StableGRPOTrainer` on top of TRL.

What is here is only what binds the two: our settings in TRL's words, its numbers into our run
folder, and the last checkpoint that was written whole, from which an interrupted run goes on.
Metrics and transcripts of steps after that checkpoint are cut off first, since those steps are done
again.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from accelerate.utils import gather_object
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback

from adapters.training.guards.config import GuardConfig
from adapters.training.runs.phases import Grpo
from adapters.training.runs.preparation import WARMUP, adapter_config, note_origin
from adapters.training.runs.settings import TrainSettings
from adapters.trl import StableGRPOConfig, StableGRPOTrainer, build_trainer
from adapters.trl.settings import grpo_config
from toolgym.errors import ConfigurationError
from toolgym.runs.run import Run


def train_with_trl(job: Grpo) -> None:
    """Train the job's model in place, up to the last step of its settings.

    Raises:
        ConfigurationError: TRL cannot train with these settings.
        EnvironmentFault: The environment keeps failing.
        TrainingStopped: The guards ended the run.
    """
    settings, run = job.settings, job.run
    checkpoint, done = last_checkpoint(run)
    job.cut_off_after(done)
    is_over = bool(settings.eval_every) and any(gather_object([job.is_over]))
    if checkpoint is not None and (is_over or done >= settings.steps):
        return _load_weights(job.model, job.kept or checkpoint, settings.lora)
    with quiet_libraries():
        trainer = _trainer(job)
        trainer.add_callback(OriginNotes(settings))
        if settings.eval_every:
            trainer.add_callback(HeldOutStop(job, trainer))
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if not settings.lora:
        return job.load_kept()
    adapted, kept = trainer.accelerator.unwrap_model(trainer.model), job.kept
    if kept is None:
        adapted.merge_and_unload()
    else:
        adapted.unload()
        _load_weights(job.model, kept, has_adapter=True)


class OriginNotes(TrainerCallback):
    """A callback that writes into each checkpoint what it was trained for."""

    def __init__(self, settings: TrainSettings) -> None:
        self._settings = settings

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Add the file to the checkpoint of this step."""
        folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            note_origin(folder, self._settings)


class HeldOutStop(TrainerCallback):
    """A callback that evaluates on held-out tasks after a step, and ends the run if need be.

    The first process evaluates, and the others wait for what it says. The guards see the result at
    the next step.
    """

    def __init__(self, job: Grpo, trainer: StableGRPOTrainer) -> None:
        self._job, self._trainer = job, trainer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate before the first step."""
        self._is_enough(state.global_step)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate if it is time for it; at an early end a checkpoint is saved, as at the last."""
        if self._is_enough(state.global_step) and not control.should_training_stop:
            control.should_training_stop = control.should_save = True

    def _is_enough(self, step: int) -> bool:
        trained = self._trainer.accelerator.unwrap_model(self._trainer.model)
        saved = trained if self._job.settings.lora else None
        is_over = any(gather_object([self._job.is_enough(step, saved)]))
        self._trainer.held_out = gather_object([self._job.held_out_at(step)])[0]
        return is_over


def _trainer(job: Grpo) -> StableGRPOTrainer:
    """The trainer of a job, which writes into its run."""
    settings, run = job.settings, job.run
    warmup = run.checkpoints / WARMUP
    trainer = build_trainer(
        job.model,
        job.tokenizer,
        settings.env_id,
        env_kwargs=settings.training_kwargs,
        config=grpo_options(settings, run.checkpoints),
        peft_config=adapter_config(settings),
        reference=warmup if warmup.is_dir() else settings.model,
        control=settings.control,
        on_metrics=job.tell_metrics,
        on_rollouts=job.tell_rollouts,
    )
    trainer.remove_callback(PrinterCallback)
    return cast("StableGRPOTrainer", trainer)


def check_settings(settings: TrainSettings) -> GuardConfig:
    """Make sure that TRL takes them, before anything is made.

    Returns:
        The settings of the guards that will watch.

    Raises:
        ConfigurationError: It does not, or they are known to fail, or a library is missing.
    """
    adapter_config(settings)
    config = grpo_config(grpo_options(settings, Path("checkpoints")), step_limit=1)
    return cast("StableGRPOConfig", config).guard_config()


def grpo_options(settings: TrainSettings, checkpoints: Path) -> dict[str, Any]:
    """The settings as arguments of `StableGRPOConfig`.

    The tiny model's rollouts of a step go through one forward pass; a pretrained model takes one
    group at a time and adds the gradients up. Several processes share the tasks of a step.
    """
    rollouts = settings.group_size * share_of(settings.prompts)
    at_once = rollouts if settings.is_tiny else settings.group_size
    options: dict[str, Any] = {
        "output_dir": str(checkpoints),
        "max_steps": settings.steps,
        "num_generations": settings.group_size,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": rollouts // at_once,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant",
        "adam_beta2": 0.98,
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "temperature": settings.temperature,
        "max_completion_length": settings.max_completion_length,
        "seed": settings.seed,
        "save_strategy": "steps",
        "save_steps": settings.save_every,
        "save_total_limit": 2,
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    if settings.is_tiny:  # on the CPU wherever it runs, so that its numbers are the same
        options["use_cpu"] = True
    if settings.vllm is not None:
        options |= {"use_vllm": True, "vllm_mode": settings.vllm}
    return options | settings.trainer_options


def share_of(prompts: int) -> int:
    """The number of a step's tasks that each process of a launcher plays.

    Raises:
        ConfigurationError: They cannot be dealt evenly.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if prompts % processes:
        raise ConfigurationError(
            f"--prompts {prompts} cannot be dealt to {processes} processes: take a multiple."
        )
    return prompts // processes


def last_checkpoint(run: Run) -> tuple[Path | None, int]:
    """The newest checkpoint that the trainer wrote to its end, and its step; else None and 0."""
    whole = [path for path in run.checkpoints.glob("checkpoint-*") if _step(path)]
    newest = max(whole, key=_step, default=None)
    return newest, _step(newest) if newest else 0


def _step(checkpoint: Path) -> int:
    """The step of a checkpoint; 0 where it was cut off: the state is what is written last."""
    try:
        state = json.loads((checkpoint / "trainer_state.json").read_bytes())
        return int(state["global_step"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _load_weights(model: PreTrainedModel, checkpoint: Path, has_adapter: bool) -> None:
    if has_adapter:
        from peft import PeftModel

        PeftModel.from_pretrained(model, str(checkpoint)).merge_and_unload()
        return
    trained = type(model).from_pretrained(str(checkpoint), dtype=torch.float32)
    model.load_state_dict(trained.state_dict())


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Silence the notices of transformers and TRL, and the warnings that `check_settings` gave.

    Verbosity, log levels and warning filters are restored on exit: a process may train several
    times and use these libraries for other work.
    """
    verbosity = transformers.logging.get_verbosity()
    loggers = [logging.getLogger(name) for name in ("trl", "adapters.trl.config")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        transformers.logging.set_verbosity_error()
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            transformers.logging.set_verbosity(verbosity)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
