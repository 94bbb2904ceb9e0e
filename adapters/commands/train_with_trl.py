"""The reinforcement learning of a run, done by TRL's `GRPOTrainer`.

What is here is only what binds the two: our settings in TRL's words, its numbers into our run
folder, and the last checkpoint that was written whole, from which an interrupted run goes on.
Metrics and transcripts of steps after that checkpoint are cut off first, since those steps are done
again.
"""

from __future__ import annotations

import json
import logging
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel
from transformers.trainer_callback import PrinterCallback

from adapters.training.job import Grpo
from adapters.training.settings import TrainSettings
from adapters.trl import build_trainer
from toolgym.runs import Run


def train_with_trl(job: Grpo) -> None:
    """Train the job's model in place, up to the last step of its settings.

    Raises:
        ConfigurationError: TRL cannot train with these settings.
        EnvironmentFault: The environment keeps failing.
    """
    settings, run = job.settings, job.run
    checkpoint, done = last_checkpoint(run)
    run.cut_metrics("grpo", done)
    run.cut_rollouts("grpo", done)
    job.advance(done, "")
    if checkpoint is not None and done >= settings.steps:
        return _load_weights(job.model, checkpoint)

    def on_metrics(step: int, numbers: dict[str, float]) -> None:
        run.log_metrics({"phase": "grpo", "step": step, **numbers})
        job.advance(step, f"reward {numbers.get('reward', float('nan')):.3f}")

    def on_rollouts(step: int, records: list[dict[str, Any]]) -> None:
        run.log_rollouts({"phase": "grpo", "step": step, **record} for record in records)

    _quieten()
    trainer = build_trainer(
        job.model,
        job.tokenizer,
        settings.env_id,
        env_kwargs=settings.training_kwargs,
        config=grpo_options(settings, run.checkpoints),
        control=settings.control,
        on_metrics=on_metrics,
        on_rollouts=on_rollouts,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)


def grpo_options(settings: TrainSettings, checkpoints: Path) -> dict[str, Any]:
    """The settings as arguments of TRL's `GRPOConfig`.

    The tiny model's rollouts of a step go through one forward pass; a pretrained model takes one
    group at a time and adds the gradients up.
    """
    rollouts = settings.group_size * settings.prompts
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
        options |= {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    return options


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


def _load_weights(model: PreTrainedModel, checkpoint: Path) -> None:
    trained = type(model).from_pretrained(str(checkpoint), dtype=torch.float32)
    model.load_state_dict(trained.state_dict())


def _quieten() -> None:
    """Keep from the user what transformers and TRL only have to tell each other."""
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.getLogger("trl").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning)
