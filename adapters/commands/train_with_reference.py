"""The reinforcement learning of a run, done by `ReferenceTrainer`.

What is here is only what binds the two: our settings in its words and its numbers into our run
folder. The trainer goes on from its own last checkpoint; metrics and transcripts of steps after
that checkpoint are cut off first, since those steps are done again.
"""

from __future__ import annotations

from typing import Any

from adapters.reference.checkpoint import Checkpoints
from adapters.reference.config import ReferenceConfig, reference_config
from adapters.reference.trainer import ReferenceTrainer
from adapters.training.guards.config import GuardConfig
from adapters.training.runs.phases import Grpo
from adapters.training.runs.settings import TrainSettings
from toolgym.errors import ConfigurationError


def train_with_reference(job: Grpo) -> None:
    """Train the job's model in place, up to the last step of its settings.

    Raises:
        ConfigurationError: The trainer cannot train with these settings.
        EnvironmentFault: The environment keeps failing.
        TrainingStopped: The guards ended the run.
    """
    settings, run = job.settings, job.run
    config = reference_options(settings)
    done = max(Checkpoints(run.checkpoints, config.keep).steps(), default=0)
    job.cut_off_after(done)

    ReferenceTrainer(
        job.model,
        job.tokenizer,
        settings.env_id,
        run.checkpoints,
        config,
        env_kwargs=settings.training_kwargs,
        on_metrics=job.tell_metrics,
        on_rollouts=job.tell_rollouts,
    ).train()


def check_settings(settings: TrainSettings) -> GuardConfig:
    """Make sure that the trainer takes them, before anything is made.

    Returns:
        The settings of the guards that will watch.

    Raises:
        ConfigurationError: It does not.
    """
    if settings.lora or settings.vllm is not None:
        option = "--lora" if settings.lora else "--vllm"
        raise ConfigurationError(f"{option} is for --trainer trl; the reference trainer has none.")
    return reference_options(settings).guards


def reference_options(settings: TrainSettings) -> ReferenceConfig:
    """The settings as a `ReferenceConfig`.

    Raises:
        ConfigurationError: A value is unknown or out of range.
    """
    options: dict[str, Any] = {
        "steps": settings.steps,
        "seed": settings.seed,
        "group_size": settings.group_size,
        "prompts": settings.prompts,
        "temperature": settings.temperature,
        "max_completion_length": settings.max_completion_length,
        "learning_rate": settings.learning_rate,
        "save_every": settings.save_every,
        "control": settings.control,
    }
    return reference_config(options | settings.trainer_options)
