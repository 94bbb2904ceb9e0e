"""The reinforcement learning of a run with TRL's `GRPOTrainer`.

It translates the settings of a run into TRL's, writes TRL's metrics into the run folder, and
resumes from the last complete checkpoint. Metrics and transcripts of later steps are cut off first,
since those steps are done again.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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
from trl import GRPOTrainer

from adapters.training.guards.config import GuardConfig
from adapters.training.runs.grpo import Grpo
from adapters.training.runs.preparation import SFT, adapter_config, note_origin
from adapters.training.runs.settings import TrainSettings
from adapters.trl import GuardCallback, Rollouts, grpo_config
from adapters.trl.config import guard_config
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
    is_over = bool(settings.eval_every) and any(gather_object([job.is_over(done)]))
    if checkpoint is not None and (is_over or done >= settings.steps):
        return _load_weights(job.model, job.kept or checkpoint, settings.lora)
    with quiet_libraries():
        trainer, guards = _trainer(job)
        trainer.add_callback(OriginNotes(settings))
        if settings.eval_every:
            trainer.add_callback(HeldOutStop(job, trainer, guards))
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

    def __init__(self, job: Grpo, trainer: GRPOTrainer, guards: GuardCallback) -> None:
        self._job, self._trainer, self._guards = job, trainer, guards

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
        found = gather_object([self._job.evaluate_after(step, saved)])[0]
        self._guards.held_out = found or {}
        return found is None


def _trainer(job: Grpo) -> tuple[GRPOTrainer, GuardCallback]:
    """The trainer of a job, which writes into its run, and its guards."""
    settings, run = job.settings, job.run
    own, options = _divided(settings, run.checkpoints)
    guards, snapshot_steps = own.pop("guards"), own.pop("snapshot_steps")
    rollouts = Rollouts(settings.env_id, settings.training_kwargs, control=settings.control, **own)

    callback = GuardCallback(rollouts, guards, snapshot_steps=snapshot_steps, on_step=job.on_step)
    start = run.checkpoints / SFT
    name = job.model.config.name_or_path
    # TRL loads the reference of the KL penalty by the model's name.
    job.model.config.name_or_path = str(start) if start.is_dir() else settings.model
    trainer = GRPOTrainer(
        model=job.model,
        processing_class=job.tokenizer,
        args=grpo_config(**options),
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(settings.steps * settings.prompts, seed=settings.seed),
        peft_config=adapter_config(settings),
        callbacks=[callback],
    )
    job.model.config.name_or_path = name
    trainer.remove_callback(PrinterCallback)
    return trainer, callback


def check_settings(settings: TrainSettings) -> GuardConfig:
    """Check that TRL takes the settings, before anything is made.

    Returns:
        The settings of the guards.

    Raises:
        ConfigurationError: They are refused, or known to fail, or a library is missing.
    """
    adapter_config(settings)
    own, options = _divided(settings, Path("checkpoints"))
    grpo_config(**options)
    for name in ("max_draws", "workers", "snapshot_steps"):
        value, is_number = own[name], isinstance(own[name], int | float)
        if (value is not None or name != "max_draws") and not (is_number and value >= 1):
            raise ConfigurationError(f"{name} must be at least 1; got {value!r}.")
    return guard_config(own["guards"])


ROLLOUT_OPTIONS: Final[Mapping[str, Any]] = {
    "max_draws": 3.0,
    "workers": 16,
    "guards": {},
    "snapshot_steps": 10,
}
"""Options of `Rollouts` and `GuardCallback` that `--set` takes, with their defaults."""


def _divided(settings: TrainSettings, checkpoints: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of `Rollouts` and `GuardCallback`, and those of `GRPOConfig`."""
    options = grpo_options(settings, checkpoints)
    own = {name: options.pop(name, value) for name, value in ROLLOUT_OPTIONS.items()}
    return own, options


def grpo_options(settings: TrainSettings, checkpoints: Path) -> dict[str, Any]:
    """The settings as arguments of `grpo_config`, with those of `ROLLOUT_OPTIONS`.

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
