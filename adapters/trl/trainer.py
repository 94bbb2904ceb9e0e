"""`build_trainer`: TRL's `GRPOTrainer` on an environment, ready to train.

`ToolGRPOTrainer` adds to TRL's what a run on tools needs, each by wrapping a method and calling it,
never by a copy, since copies drift: messages are read as in evaluation (`reading`), a rollout stops
with its episode (`stopping`), groups are measured by outcome (`figures`), prompts show the tools by
the schemas of evaluation and demonstrations, and the control experiment shuffles rewards.

The environment alone also works with a plain `GRPOTrainer`; then TRL's own limits hold: a malformed
call ends the rollout without a word, a misspelt tool is "not found", and one turn more is generated
after the answer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import gather_object
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from adapters.trl import settings
from adapters.trl.factory import RolloutEnvironment, environment_factory
from adapters.trl.faults import FaultStop
from adapters.trl.figures import PREFIX, Figures, batch_metrics, step_metrics
from adapters.trl.questions import training_dataset
from adapters.trl.reading import ReadingTokenizer, RolloutTools
from adapters.trl.stopping import ToolLoop
from toolgym.errors import ConfigurationError
from toolgym.rollout import EpisodeRecord

SHUFFLED_REWARDS = "shuffled-rewards"
OnMetrics = Callable[[int, dict[str, float]], None]
OnRollouts = Callable[[int, list[dict[str, Any]]], None]


class ToolGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """`GRPOTrainer` for one environment made by `environment_factory`.

    Args:
        args: Passed to `GRPOTrainer`, as are all other keywords.
        environment_factory: The environment class.
        control: None, or "shuffled-rewards": every reward goes to a random rollout of the batch, so
            whatever is learnt then is not learnt from the environment.
        on_metrics: Called with the optimizer step and its numbers, whenever TRL logs.
        on_rollouts: Called with the step that a generation batch is for and some of its episodes.
        transcripts: How many episodes of each batch `on_rollouts` gets, from the first group on.
    """

    def __init__(
        self,
        *args: Any,
        environment_factory: type[RolloutEnvironment],
        control: str | None = None,
        on_metrics: OnMetrics | None = None,
        on_rollouts: OnRollouts | None = None,
        transcripts: int = 4,
        **kwargs: Any,
    ) -> None:
        if control not in (None, SHUFFLED_REWARDS):
            raise ConfigurationError(
                f"control must be None or {SHUFFLED_REWARDS!r}, got {control!r}."
            )
        if kwargs.get("tools") or kwargs.get("rollout_func"):
            raise ConfigurationError(
                "tools and rollout_func go past the environment, which would neither see nor score"
                " them: make each tool a @tool of the environment."
            )
        super().__init__(*args, environment_factory=environment_factory, **kwargs)
        self._control = control
        self._on_metrics = on_metrics
        self._on_rollouts = on_rollouts
        self._transcripts = transcripts
        self._loop: ToolLoop | None = None
        env = self._environment_pool[None][0]._playing
        self._env_tools = {None: env.tool_schemas()}
        self._is_lenient = env.parsing == "lenient"
        if self._is_lenient:
            self._tokenizer: Any = ReadingTokenizer(self._tokenizer, env.tools)

    def _tool_call_loop(
        self,
        prompts: list[Any],
        prompt_ids: list[list[int]],
        completion_ids: list[list[int]],
        completions: list[list[dict[str, Any]]],
        *rest: Any,
    ) -> Any:
        """Play messages as they were written, and end the rollouts whose episodes are over."""
        if self._is_lenient:
            pairs = zip(self.environments, completions, strict=True)
            self._sync_tool_dicts = [RolloutTools(env, messages) for env, messages in pairs]
        # Several processes must generate equally often; images would have to be sorted too.
        has_images = any(rest[1:])
        if self.accelerator.num_processes == 1 and not has_images:
            eos = self._tokenizer.eos_token_id
            self._loop = ToolLoop(self.environments, prompt_ids, completion_ids, eos)
        try:
            outcome = super()._tool_call_loop(
                prompts, prompt_ids, completion_ids, completions, *rest
            )
            if self._loop is not None:
                self._loop.mask(outcome[0])
        finally:
            self._loop = None
        return outcome

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        def generate(sequences: list[list[int]]) -> Any:
            return super(ToolGRPOTrainer, self)._generate_single_turn(sequences, *args, **kwargs)

        return self._loop.generate(prompt_ids, generate) if self._loop else generate(prompt_ids)

    def _calculate_rewards(
        self,
        inputs: list[dict[str, Any]],
        prompts: list[Any],
        completions: list[Any],
        completion_ids_list: list[list[int]],
    ) -> torch.Tensor:
        """Rewards of all processes, (rollouts, reward functions); nan where unscored."""
        early = [not environment._is_over() for environment in self.environments]
        rewards: torch.Tensor = super()._calculate_rewards(
            inputs, prompts, completions, completion_ids_list
        )
        if self._control == SHUFFLED_REWARDS and self.model.training:
            rewards = rewards[self._shuffled_rows(rewards)]
        self._measure(early, rewards)
        if self._on_rollouts and self.model.training and self.accelerator.is_main_process:
            self._on_rollouts(self.state.global_step + 1, self._episode_records())
        return rewards

    def _shuffled_rows(self, rewards: torch.Tensor) -> list[int]:
        """Which row's reward each rollout gets; unscored rollouts keep theirs."""
        rows = list(range(len(rewards)))
        scored = [row for row in rows if not torch.isnan(rewards[row]).all()]
        drawn = list(scored)
        random.Random(f"toolgym-control-{self.args.seed}-{self._step}").shuffle(drawn)
        for row, other in zip(scored, drawn, strict=True):
            rows[row] = other
        return rows

    def _measure(self, early: list[bool], rewards: torch.Tensor) -> None:
        """Add the figures of a generation batch to what TRL will log."""
        mode = "train" if self.model.training else "eval"
        group = self.num_generations if self.model.training else self.num_generations_eval
        played = [environment._played() for environment in self.environments]
        own = [
            Figures(scored=False) if env is None else Figures.of(env, stopped)
            for env, stopped in zip(played, early, strict=True)
        ]
        weighted = rewards * self.reward_weights.to(rewards.device)
        totals = weighted.nansum(dim=1).masked_fill(rewards.isnan().all(dim=1), math.nan)
        numbers = batch_metrics(gather_object(own), totals.tolist(), group)
        for name, number in numbers.items():
            self._metrics[mode][PREFIX + name].append(number)

    def _episode_records(self) -> list[dict[str, Any]]:
        some = [environment._played() for environment in self.environments[: self._transcripts]]
        env_id = type(self.environments[0])._env_id
        return [EpisodeRecord.of(env, env_id).to_json() for env in some if env is not None]

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does, then hand the step's numbers on under our names."""
        training = "loss" in logs
        super().log(logs, start_time)
        if training and self._on_metrics and self.accelerator.is_main_process:
            self._on_metrics(self.state.global_step, step_metrics(logs))


def build_trainer(
    model: PreTrainedModel | str,
    tokenizer: PreTrainedTokenizerBase,
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    config: GRPOConfig | Mapping[str, Any],
    dataset: Any = None,
    control: str | None = None,
    on_metrics: OnMetrics | None = None,
    on_rollouts: OnRollouts | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    trainer_class: type[ToolGRPOTrainer] = ToolGRPOTrainer,
) -> ToolGRPOTrainer:
    """A trainer on which only `train()` is left to call.

    Args:
        model: The policy, or its path or hub id.
        tokenizer: With a chat template that renders tools; its padding must not be its end of turn.
        env_id: A registered `ToolEnv`.
        env_kwargs: For `gym.make`.
        config: A `GRPOConfig`, or settings over the defaults of `adapters.trl.settings`.
        dataset: As `training_dataset` makes it; None makes one of all tasks.
        control: None or "shuffled-rewards".
        on_metrics: Called with a step and its numbers (`figures.step_metrics`) at each log.
        on_rollouts: Called with a step and some `EpisodeRecord`s as dicts, once per batch.
        callbacks: More callbacks; `FaultStop` is always there.
        trainer_class: A subclass of `ToolGRPOTrainer`.

    Raises:
        ConfigurationError: Something would train nothing, or something else; the message says what.
    """
    options = dict(env_kwargs or {})
    environment = environment_factory(env_id, **options)
    made = settings.prepare(model, tokenizer, environment, config)
    rows = training_dataset(env_id, seed=made.seed, **options) if dataset is None else dataset
    settings.check_rows(rows, made)
    return trainer_class(
        model=model,
        processing_class=tokenizer,
        args=made,
        train_dataset=rows,
        environment_factory=environment,
        control=control,
        on_metrics=on_metrics,
        on_rollouts=on_rollouts,
        callbacks=[FaultStop(environment), *callbacks],
    )
