"""GRPO settings that fit tool environments, and checks of data set and tokenizer.

TRL's own defaults suit a large model on a GPU. Some of them train nothing here, or fail without a
word: bf16 and gradient checkpointing on a CPU, one log line in ten steps, a data set with fewer
rows than a generation batch has groups (TRL then runs zero steps), texts of tools whose control
tokens become real ones.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sized
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase
from trl import GRPOConfig
from trl.chat_template_utils import add_response_schema

from adapters.training.models.tokenized_examples import SANITIZED, can_sanitize
from adapters.trl.config import StableGRPOConfig
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError

DEFAULTS: dict[str, Any] = {
    "num_generations": 8,
    "per_device_train_batch_size": 32,
    "beta": 0.0,
    "loss_type": "dr_grpo",
    "scale_rewards": "none",
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "max_completion_length": 1024,
    "logging_steps": 1,
    "report_to": "none",
    "save_strategy": "no",
}
"""Defaults of a dict of settings for TRL's own `GRPOConfig`.

Dr. GRPO without scaling (Liu et al. 2025, arXiv:2503.20783): no division by a group's standard
deviation, so that a small difference stays small.
"""

ON_CPU: dict[str, Any] = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}

_PLAIN_RESPONSES: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor_pattern": "^",
    "fields": {"content": {"content": "text"}},
}


def grpo_config(
    config: GRPOConfig | Mapping[str, Any],
    step_limit: int,
    config_class: type[GRPOConfig] = StableGRPOConfig,
) -> GRPOConfig:
    """A config for this environment, from a config or from settings over the defaults.

    Args:
        config: A finished config (which is copied, not changed), or a dict of its arguments.
        step_limit: The environment's budget of calls; the terminal call comes on top.
        config_class: What a dict makes: `StableGRPOConfig`, or TRL's own over `DEFAULTS`.

    Raises:
        ConfigurationError: A setting is unknown, out of range, or known to fail.
    """
    if isinstance(config, GRPOConfig):
        return fitted(config, step_limit)
    is_stable = issubclass(config_class, StableGRPOConfig)  # knows the machine by itself
    defaults = {} if is_stable else DEFAULTS
    machine = {} if torch.accelerator.is_available() else {"use_cpu": True} if is_stable else ON_CPU
    try:
        made = config_class(**{**defaults, **machine, **config})
    except ConfigurationError:
        raise
    except (TypeError, ValueError) as problem:
        raise ConfigurationError(f"these settings make no GRPOConfig: {problem}") from problem
    return fitted(made, step_limit)


def fitted(config: GRPOConfig, step_limit: int) -> GRPOConfig:
    """A copy of a config that keeps all columns, and lets an episode use its budget of calls.

    Args:
        config: Any config of TRL's.
        step_limit: The environment's budget of calls; the terminal call comes on top.
    """
    made = copy.copy(config)
    made.remove_unused_columns = False  # `reset` needs the task id
    if made.max_tool_calling_iterations is None:
        made.max_tool_calling_iterations = step_limit + 1
    return made


def check_rows(dataset: Any, config: GRPOConfig) -> None:
    """Check that a data set has a row for each group of a generation batch.

    Raises:
        ConfigurationError: There are too few rows, with which TRL would train zero steps.
    """
    groups = config.generation_batch_size // config.num_generations
    if isinstance(dataset, Sized) and len(dataset) < groups:
        raise ConfigurationError(
            f"the data set has {len(dataset)} rows, but a generation batch of"
            f" {config.generation_batch_size} rollouts in groups of {config.num_generations} needs"
            f" {groups}: with fewer, TRL trains zero steps. Add tasks, or lower"
            " per_device_train_batch_size, or raise num_generations."
        )


def check_tasks(dataset: Any, env: ToolEnv[Any], name: str) -> None:
    """Check that the environment has the tasks that the rows of a data set name.

    Args:
        dataset: One, or a dict of them; those without a column `task_id` are left alone.
        env: The environment that is trained in.
        name: Of the data set, for the message.

    Raises:
        ConfigurationError: It has not; every rollout of such a row would be lost to a fault.
    """
    if isinstance(dataset, Mapping):
        for each in dataset.values():
            check_tasks(each, env, name)
        return
    columns = getattr(dataset, "column_names", None)
    if not isinstance(dataset, Sized) or not isinstance(columns, list) or "task_id" not in columns:
        return
    task_ids = {*env.tasks.ids, *env.tasks.refused}
    named = [str(task) for task in dataset["task_id"] if task is not None]  # type: ignore[index]
    strange = [task for task in dict.fromkeys(named) if task not in task_ids]
    if strange:
        raise ConfigurationError(
            f"{name} names {len(strange)} tasks that the environment does not have, {strange[0]!r}"
            " among them: make it with training_dataset and the arguments of environment_factory,"
            " `split` included. Tasks of another split are for `toolgym eval`, or for an evaluation"
            " with build_trainer(..., eval_env_kwargs=...)."
        )


def prepare_tokenizer(
    tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any], config: GRPOConfig
) -> None:
    """Make TRL accept any chat template, and have control tokens in texts encoded as text.

    TRL reads responses of known templates only. Our parser finds the calls, so for another template
    it is enough to say that a response is text. The strict wall keeps TRL's own reading.
    """
    has_schema = any(
        getattr(tokenizer, name, None) for name in ("response_template", "response_schema")
    )
    if not has_schema and env.parsing == "lenient":
        try:
            add_response_schema(tokenizer)
        except ValueError:
            tokenizer.response_template = _PLAIN_RESPONSES
    options = dict(config.chat_template_kwargs or {})
    if not SANITIZED.keys() & options.keys() and can_sanitize(tokenizer, env):
        config.chat_template_kwargs = {**options, **SANITIZED}
