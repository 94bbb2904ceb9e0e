"""Environments for TRL's `GRPOTrainer`, and matching data sets.

    from trl import GRPOTrainer
    from adapters.trl import GuardCallback, Rollouts, grpo_config

    rollouts = Rollouts("sqlgym/Explore-v0", {"dataset": "my.db"})
    trainer = GRPOTrainer(
        "Qwen/Qwen3-1.7B",
        args=grpo_config(output_dir="run", max_steps=100),
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(),
        callbacks=[GuardCallback(rollouts)],
    )
    trainer.train()

The package uses only documented interfaces of TRL. `environment_factory` and `training_dataset`
support TRL's own tool loop and `AsyncGRPOTrainer`.

torch, transformers, trl and datasets are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.trl.datasets import FormatReport, check_format, sft_dataset, training_dataset
from adapters.trl.environment import CallRefused, RolloutEnvironment, environment_factory
from toolgym.lazy import lazy_names

if TYPE_CHECKING:
    from adapters.trl.callbacks import FaultStop, GuardCallback
    from adapters.trl.config import grpo_config
    from adapters.trl.response_reading import with_call_reading
    from adapters.trl.rollouts import Rollouts

__all__ = [
    "CallRefused",
    "FaultStop",
    "FormatReport",
    "GuardCallback",
    "RolloutEnvironment",
    "Rollouts",
    "check_format",
    "environment_factory",
    "grpo_config",
    "sft_dataset",
    "training_dataset",
    "with_call_reading",
]

__getattr__ = lazy_names(
    __name__,
    {
        "adapters.trl.callbacks": "FaultStop GuardCallback",
        "adapters.trl.config": "grpo_config",
        "adapters.trl.response_reading": "with_call_reading",
        "adapters.trl.rollouts": "Rollouts",
    },
)[0]
