"""The GRPO phase of a run with TRL's `GRPOTrainer`.

This module converts the settings of a run to TRL's settings, writes the metrics of TRL into the run
folder, and resumes from the last complete checkpoint. Metrics and transcripts of later steps are
removed first, since those steps are repeated.
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

from adapters.reference.losses import LOSSES
from adapters.training.runs.grpo import Grpo
from adapters.training.runs.preparation import SFT, adapter_config, note_origin
from adapters.training.settings import SCALE_REWARDS, TrainSettings, option_of
from adapters.trl import GuardCallback, Rollouts, grpo_config
from toolgym.errors import ConfigurationError
from toolgym.runs.run import Run


def train_with_trl(job: Grpo) -> None:
    """Train the model of a job in place, up to the last step of its settings.

    Raises:
        ConfigurationError: TRL does not support the settings.
        EnvironmentFault: The environment fails repeatedly.
        TrainingStopped: The guards stopped the run.
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
    """A callback that writes `toolgym.json` into each checkpoint."""

    def __init__(self, settings: TrainSettings) -> None:
        self._settings = settings

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Add `toolgym.json` to the checkpoint of this step."""
        folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            note_origin(folder, self._settings)


class HeldOutStop(TrainerCallback):
    """A callback that evaluates on held-out tasks after a step, and may stop the run.

    The first process evaluates, and the others wait for its decision. The guards receive the result
    at the next step.
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
        """Evaluate if it is due, and save a checkpoint if the run stops early."""
        if self._is_enough(state.global_step) and not control.should_training_stop:
            control.should_training_stop = control.should_save = True

    def _is_enough(self, step: int) -> bool:
        trained = self._trainer.accelerator.unwrap_model(self._trainer.model)
        saved = trained if self._job.settings.lora else None
        found = gather_object([self._job.evaluate_after(step, saved)])[0]
        self._guards.held_out = found or {}
        return found is None


def _trainer(job: Grpo) -> tuple[GRPOTrainer, GuardCallback]:
    """Return the trainer of a job, which writes into its run, and its guards."""
    settings, run = job.settings, job.run
    rollouts = Rollouts(
        settings.env_id,
        settings.training_kwargs,
        max_draws=settings.max_draws,
        control=settings.control,
        workers=settings.workers,
    )
    callback = GuardCallback(rollouts, settings.guards, on_step=job.on_step)
    imitated = run.checkpoints / SFT
    name = job.model.config.name_or_path
    # TRL loads the reference model of the KL penalty by the name of the model.
    job.model.config.name_or_path = str(imitated) if imitated.is_dir() else settings.model
    trainer = GRPOTrainer(
        model=job.model,
        processing_class=job.tokenizer,
        args=grpo_config(**trl_options(settings, run.checkpoints)),
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(settings.steps * settings.prompts, seed=settings.seed),
        peft_config=adapter_config(settings),
        callbacks=[callback],
    )
    job.model.config.name_or_path = name
    trainer.remove_callback(PrinterCallback)
    return trainer, callback


def check_settings(settings: TrainSettings) -> None:
    """Check that TRL supports the settings.

    Raises:
        ConfigurationError: TRL does not support the settings, or a library is missing.
    """
    adapter_config(settings)
    grpo_config(**trl_options(settings, Path("checkpoints")))


_SAME_NAME: Final = (
    *("temperature", "max_completion_length", "seed", "beta", "learning_rate", "weight_decay"),
    *("max_grad_norm", "gradient_checkpointing"),
)
_TRL_NAMES: Final[Mapping[str, str]] = {
    **{name: name for name in _SAME_NAME},
    "max_steps": "steps",
    "num_generations": "group_size",
    "num_iterations": "updates_per_batch",
    "entropy_coef": "entropy_bonus",
    "warmup_steps": "lr_warmup_steps",
    "save_steps": "save_every",
    "save_total_limit": "keep",
}
"""The setting for each argument of `GRPOConfig` that has the same value."""
_OTHERS: Final[Mapping[str, str]] = {
    "output_dir": "out",
    "lr_scheduler_type": "lr_decay",
    "loss_type": "loss",
    "importance_sampling_level": "loss",
    "epsilon": "epsilon_low",
    "epsilon_high": "epsilon_high",
    "scale_rewards": "advantages",
    "adam_beta1": "betas",
    "adam_beta2": "betas",
    "use_vllm": "vllm",
    "vllm_mode": "vllm",
    "mask_truncated_completions": "learn_from_unfinished",
}
"""The setting for each other argument of `GRPOConfig` that settings determine."""


def trl_options(settings: TrainSettings, checkpoints: Path) -> dict[str, Any]:
    """Return the settings as arguments of `grpo_config`.

    With the tiny model, all rollouts of a step are in one forward pass. With a pretrained model,
    each forward pass contains one group, and gradients are accumulated. Several processes share the
    tasks of a step.

    Raises:
        ConfigurationError: An argument in `trl` is already determined by another setting.
    """
    for name in settings.trl:
        decided_by = {**_TRL_NAMES, **_OTHERS}.get(name)
        is_other_loss = name == "loss_type" and settings.trl[name] not in LOSSES
        if decided_by is not None and not is_other_loss:
            raise ConfigurationError(f"--trl {name} is not allowed; use {option_of(decided_by)}.")
    rollouts = settings.group_size * share_of(settings.prompts)
    at_once = rollouts if settings.is_tiny else settings.group_size
    own = settings.trl.get("per_device_train_batch_size")
    at_once = own if isinstance(own, int) and own > 0 else at_once
    loss = LOSSES[settings.loss]
    low = loss.low if settings.epsilon_low is None else settings.epsilon_low
    high = loss.high if settings.epsilon_high is None else settings.epsilon_high
    is_gspo, is_cispo = settings.loss == "gspo", settings.loss == "cispo"
    decay = "constant_with_warmup" if settings.lr_decay == "constant" else settings.lr_decay
    options: dict[str, Any] = {
        **{theirs: getattr(settings, ours) for theirs, ours in _TRL_NAMES.items()},
        "output_dir": str(checkpoints),
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": rollouts // at_once,
        "lr_scheduler_type": decay,
        "adam_beta1": settings.betas[0],
        "adam_beta2": settings.betas[1],
        "scale_rewards": SCALE_REWARDS[settings.advantages],
        "loss_type": "grpo" if is_gspo else settings.loss,
        "importance_sampling_level": "sequence" if is_gspo else "token",
        "epsilon": low,
        "epsilon_high": 1 + high if is_cispo else high,  # TRL bounds the ratio itself
        "mask_truncated_completions": not settings.learn_from_unfinished,
        "save_strategy": "steps",
        "disable_tqdm": True,
        "dataloader_pin_memory": False,
    }
    if settings.gradient_checkpointing is None:
        del options["gradient_checkpointing"]
    if settings.is_tiny:  # on the CPU wherever it runs, so that its numbers are the same
        options["use_cpu"] = True
    if settings.vllm is not None:
        options |= {"use_vllm": True, "vllm_mode": settings.vllm}
    return options | settings.trl


def share_of(prompts: int) -> int:
    """Return the number of tasks per step for each process of a launcher.

    Raises:
        ConfigurationError: The tasks cannot be divided evenly.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if prompts % processes:
        raise ConfigurationError(
            f"--prompts {prompts} cannot be divided among {processes} processes; use a multiple of"
            f" {processes}."
        )
    return prompts // processes


def last_checkpoint(run: Run) -> tuple[Path | None, int]:
    """Return the latest complete checkpoint and its step; None and 0 if there is none."""
    whole = [path for path in run.checkpoints.glob("checkpoint-*") if _step(path)]
    newest = max(whole, key=_step, default=None)
    return newest, _step(newest) if newest else 0


def _step(checkpoint: Path) -> int:
    """Return the step of a checkpoint; 0 if it is incomplete. TRL writes the state last."""
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
    """Silence messages of transformers and TRL, and warnings issued by `check_settings`.

    Verbosity, log levels and warning filters are restored on exit, since a process may use these
    libraries for other work.
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
