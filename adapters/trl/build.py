"""`build_trainer`: a complete trainer for an environment, from a model and settings.

A dict of settings, or a `StableGRPOConfig`, makes a `StableGRPOTrainer`. TRL's own `GRPOConfig`
makes a `ToolGRPOTrainer`: tools as they should be, and TRL's update as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import GRPOConfig

from adapters.trl import settings
from adapters.trl.config import StableGRPOConfig
from adapters.trl.datasets import training_dataset
from adapters.trl.environment import environment_factory
from adapters.trl.stable_trainer import StableGRPOTrainer
from adapters.trl.tool_trainer import ToolGRPOTrainer


def build_trainer(
    model: PreTrainedModel | str,
    tokenizer: PreTrainedTokenizerBase,
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    config: GRPOConfig | Mapping[str, Any],
    dataset: Any = None,
    callbacks: Sequence[TrainerCallback] = (),
    trainer_class: type[ToolGRPOTrainer] | None = None,
    **keywords: Any,
) -> ToolGRPOTrainer:
    """A complete trainer for an environment; call its `train()`.

    Args:
        model: The policy, or its path or hub id.
        tokenizer: With a chat template that renders tools; its padding must not be its end of turn.
        env_id: A registered `ToolEnv`.
        env_kwargs: For `gym.make`.
        config: A `StableGRPOConfig`, or a dict of its arguments; or TRL's `GRPOConfig`.
        dataset: As `training_dataset` makes it; None makes one of all tasks.
        callbacks: More callbacks; `FaultStop` is always there.
        trainer_class: A subclass of `ToolGRPOTrainer`; None: the one that fits the config.
        keywords: Of `ToolGRPOTrainer` (`control`, `on_metrics`, `on_rollouts`, `reference`) or of
            `GRPOTrainer`, such as `peft_config` for LoRA.

    Raises:
        ConfigurationError: Something would train nothing, or something else, or is known to fail;
            the message says what.
    """
    options = dict(env_kwargs or {})
    chosen = trainer_class or _trainer_for(config)
    config_class = StableGRPOConfig if issubclass(chosen, StableGRPOTrainer) else GRPOConfig
    environment = environment_factory(env_id, **options)
    made = settings.grpo_config(config, environment._sample().step_limit, config_class)
    rows = training_dataset(env_id, seed=made.seed, **options) if dataset is None else dataset
    return chosen(
        model=model,
        processing_class=tokenizer,
        args=made,
        train_dataset=rows,
        environment_factory=environment,
        callbacks=list(callbacks),
        **keywords,
    )


def _trainer_for(config: GRPOConfig | Mapping[str, Any]) -> type[ToolGRPOTrainer]:
    is_trls_own = isinstance(config, GRPOConfig) and not isinstance(config, StableGRPOConfig)
    return ToolGRPOTrainer if is_trls_own else StableGRPOTrainer
