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
stop when the environment keeps failing.

Importing this package is cheap. What needs torch, transformers, trl or datasets is imported when it
is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from adapters.trl.datasets import FormatReport, check_format, sft_dataset, training_dataset
from adapters.trl.environment import CallRefused, RolloutEnvironment, environment_factory

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

_NEEDS_TRL = {
    "FaultStop": "adapters.trl.callbacks",
    "StableGRPOConfig": "adapters.trl.config",
    "StableGRPOTrainer": "adapters.trl.stable_trainer",
    "ToolGRPOTrainer": "adapters.trl.tool_trainer",
    "build_trainer": "adapters.trl.stable_trainer",
}


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_TRL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_NEEDS_TRL[name]), name)
