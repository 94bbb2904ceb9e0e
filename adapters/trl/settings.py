"""Settings with which GRPO on a tool environment trains, and the checks that come before it.

TRL's own defaults suit a large model on a GPU. Some of them train nothing here, or fail without a
word: bf16 and gradient checkpointing on a CPU, one log line in ten steps, a data set with fewer
rows than a generation batch has groups (TRL then runs zero steps), a reference model that is loaded
from where the policy once came from rather than copied from what it is now.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sized
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase
from trl import GRPOConfig
from trl.chat_template_utils import add_response_schema

from adapters.trl.factory import RolloutEnvironment
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
"""What `build_trainer` sets where a dict of settings says nothing.

Dr. GRPO without scaling (Liu et al. 2025, arXiv:2503.20783): no division by a group's standard
deviation, so that a small lead stays small.
"""

ON_CPU: dict[str, Any] = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False}

_PLAIN_RESPONSES: dict[str, Any] = {
    "defaults": {"role": "assistant"},
    "start_anchor_pattern": "^",
    "fields": {"content": {"content": "text"}},
}


def prepare(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    environment: type[RolloutEnvironment],
    config: GRPOConfig | Mapping[str, Any],
) -> GRPOConfig:
    """A config for this model on this environment, and the tokenizer made ready for it.

    Raises:
        ConfigurationError: See `grpo_config` and `check_reference`.
    """
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # it warns of environment_factory
    env = environment._spare[0]
    made = grpo_config(config, env.step_limit)
    check_reference(model, made)
    prepare_tokenizer(tokenizer, env, made)
    return made


def grpo_config(config: GRPOConfig | Mapping[str, Any], step_limit: int) -> GRPOConfig:
    """A config from itself or from settings that go over the defaults.

    Args:
        config: A finished `GRPOConfig` (which is copied, not changed), or a dict of its arguments.
        step_limit: The environment's budget of calls; the terminal call comes on top.

    Raises:
        ConfigurationError: A setting is unknown or out of range.
    """
    if isinstance(config, GRPOConfig):
        made = copy.copy(config)
    else:
        machine = {} if torch.cuda.is_available() else ON_CPU
        try:
            made = GRPOConfig(**{**DEFAULTS, **machine, **config})
        except (TypeError, ValueError) as problem:
            raise ConfigurationError(f"these settings make no GRPOConfig: {problem}") from problem
    made.remove_unused_columns = False  # `reset` needs the task id
    if made.max_tool_calling_iterations is None:
        made.max_tool_calling_iterations = step_limit + 1
    return made


def check_rows(dataset: Any, config: GRPOConfig) -> None:
    """Make sure that there is a question for each group of a generation batch.

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


def check_reference(model: Any, config: GRPOConfig) -> None:
    """Make sure that the reference of a KL penalty is the model that is about to be trained.

    Raises:
        ConfigurationError: TRL would load it by a name that the model does not have.
    """
    if (
        config.beta
        and not isinstance(model, str)
        and not getattr(model.config, "_name_or_path", "")
    ):
        raise ConfigurationError(
            f"beta={config.beta:g} needs a reference model, which TRL loads by path, and this model"
            " is in memory only: save it with save_pretrained and pass the folder instead."
        )


def prepare_tokenizer(
    tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any], config: GRPOConfig
) -> None:
    """Let TRL accept any chat template, and ask for control tokens in texts to be encoded as text.

    TRL reads responses of known templates only. Our parser finds the calls, so for another template
    it is enough to say that a response is text. The strict wall keeps TRL's own reading.
    """
    known = any(getattr(tokenizer, name, None) for name in ("response_template", "response_schema"))
    if not known and env.parsing == "lenient":
        try:
            add_response_schema(tokenizer)
        except ValueError:
            tokenizer.response_template = _PLAIN_RESPONSES
    wanted = dict(config.chat_template_kwargs or {})
    if "sanitize_control_tokens" not in wanted and _can_sanitize(tokenizer, env):
        config.chat_template_kwargs = {**wanted, "sanitize_control_tokens": True}


def _can_sanitize(tokenizer: Any, env: ToolEnv[Any]) -> bool:
    """Whether this tokenizer can, and a harmless chat is not changed by it."""
    name = next(iter(env.tools))
    call = {"type": "function", "function": {"name": name, "arguments": {"a": 1}}}
    chat: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "name": name, "content": "one, two"},
    ]
    rendered = []
    try:
        for options in ({}, {"sanitize_control_tokens": True}):
            rendered.append(
                tokenizer.apply_chat_template(
                    chat, tools=env.tool_schemas(), tokenize=True, return_dict=False, **options
                )
            )
    except (NotImplementedError, TypeError, ValueError, TemplateError):
        return False
    return bool(rendered[0] == rendered[1])
