"""Environments in TRL's `GRPOTrainer`, and data sets that fit them.

    from adapters.trl import environment_factory, training_dataset

    trainer = GRPOTrainer(
        model,
        environment_factory=environment_factory("sqlgym/Explore-v0"),
        train_dataset=training_dataset("sqlgym/Explore-v0"),
        args=GRPOConfig(...),
    )

`build_trainer` does the same with what a long run wants besides: safe settings, the parser that
evaluation uses, dynamic sampling, guards over every update, metrics of groups, transcripts, and a
stop when the environment keeps failing. It is for the versions of TRL that `versions` names; the
rest works from 1.16 on.

Importing this package is cheap. What needs torch, transformers, trl or datasets is imported when it
is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.trl.datasets import FormatReport, check_format, sft_dataset, training_dataset
from adapters.trl.environment import CallRefused, RolloutEnvironment, environment_factory
from adapters.trl.versions import check_version
from toolgym.lazy import lazy_names

if TYPE_CHECKING:
    from adapters.trl.callbacks import FaultStop
    from adapters.trl.config import StableGRPOConfig
    from adapters.trl.stable_trainer import StableGRPOTrainer, build_trainer
    from adapters.trl.tool_trainer import ToolGRPOTrainer

__all__ = [
    "CallRefused",
    "FaultStop",
    "FormatReport",
    "RolloutEnvironment",
    "StableGRPOConfig",
    "StableGRPOTrainer",
    "ToolGRPOTrainer",
    "build_trainer",
    "check_format",
    "environment_factory",
    "sft_dataset",
    "training_dataset",
]

_TRAINERS = ("StableGRPOTrainer", "ToolGRPOTrainer", "build_trainer")
"""What is for certain versions of TRL only."""
_NEEDS_TRL = {
    "adapters.trl.callbacks": "FaultStop",
    "adapters.trl.config": "StableGRPOConfig",
    "adapters.trl.stable_trainer": "StableGRPOTrainer build_trainer",
    "adapters.trl.tool_trainer": "ToolGRPOTrainer",
}


_named = lazy_names(__name__, _NEEDS_TRL)[0]


def __getattr__(name: str) -> Any:
    if name in _TRAINERS:
        check_version()  # before an import of what another version may not have
    return _named(name)
