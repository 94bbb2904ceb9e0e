"""`ToolGRPOTrainer`: TRL's `GRPOTrainer` on tool environments, with TRL's own update.

It adds to TRL's what a run on tools needs, each by wrapping a method and calling it, never by a
copy, since copies drift: messages are parsed as in evaluation (`tool_loop.ParsingTokenizer`), tools
of different rollouts run at the same time, a rollout stops with its episode and is marked when it
ran out before, collective generation stays in step across processes (all `tool_loop`), groups are
measured by outcome (`step_metrics`), prompts show the tools by the schemas of evaluation and
demonstrations, and encode control tokens in texts as text (`settings`), the reference of a KL
penalty is the model as it is, a run that loses too many rollouts ends (`callbacks.FaultStop`), and
the control experiment shuffles rewards.

The environment alone also works with a plain `GRPOTrainer`; then TRL's own limits hold: a malformed
call ends the rollout without a word, a misspelt tool is "not found", and one turn more is generated
after the answer.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from transformers import PreTrainedModel
from trl import GRPOConfig, GRPOTrainer

from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from adapters.training.algorithms.workers import Workers
from adapters.trl.callbacks import FaultStop
from adapters.trl.config import StableGRPOConfig
from adapters.trl.dynamic_sampling import PlayedBatch, Rows
from adapters.trl.environment import RolloutEnvironment
from adapters.trl.evaluation import EvaluationPool, own_random_numbers
from adapters.trl.settings import check_rows, check_tasks, fitted, prepare_tokenizer
from adapters.trl.sharding import is_sharded
from adapters.trl.step_metrics import PREFIX, figures_of, step_metrics
from adapters.trl.tool_loop import (
    Generate,
    ParallelToolRunner,
    ParsingTokenizer,
    RolloutEnd,
    Sequences,
    SynchronisedGeneration,
    ToolLoop,
    Turns,
    behind_turn,
    local_generation,
    rollout_ends,
    shared_prompts,
)
from adapters.trl.versions import check_version
from toolgym.errors import ConfigurationError
from toolgym.rollout import EpisodeRecord

# The reference model of the KL penalty: the policy as it is when training begins.
#
# TRL builds the reference by loading the policy's name once more. For a policy that was warmed up
# in memory that name is the base model's, or nothing: the penalty then pulls towards a model that
# has never seen a tool. So the policy is written to a folder first, and bears its name while TRL
# builds its trainer. With LoRA there is no second model: the reference is the policy without its
# adapter, or, where the policy came with a trained one, with a copy of that as it was.


FOLDER = "reference"


@contextmanager
def named_reference(
    model: Any, config: GRPOConfig, folder: Path | str | None, *, has_adapter: bool
) -> Iterator[None]:
    """A context in which the policy's name leads to its reference model.

    Args:
        model: The policy, or its path, in which case that is the reference too.
        config: Without `beta` there is no reference.
        folder: Path or hub id of the reference; None: the model is saved below the output folder.
        has_adapter: The policy gets a LoRA adapter, or has one.

    Raises:
        ConfigurationError: Another reference is named for a policy that is given by its path.
    """
    if not config.beta or has_adapter:
        yield
        return
    if not isinstance(model, PreTrainedModel):
        if folder is not None and str(folder) != str(model):
            raise ConfigurationError(
                f"TRL loads {model} for policy and reference alike, so reference={str(folder)!r}"
                " would be passed over: load the model yourself and give that instead of its path."
            )
        yield
        return
    own_name = model.config._name_or_path
    model.config._name_or_path = str(folder or _saved(model, config))
    try:
        yield
    finally:
        model.config._name_or_path = own_name


def _saved(model: PreTrainedModel, config: GRPOConfig) -> Path:
    folder = Path(str(config.output_dir)) / FOLDER
    state = PartialState()
    if state.is_main_process or is_sharded(model.parameters()):  # shards are gathered to be saved
        model.save_pretrained(folder, is_main_process=state.is_main_process)
    state.wait_for_everyone()
    return folder


SHUFFLED_REWARDS = "shuffled-rewards"
OnMetrics = Callable[[int, dict[str, float]], None]
OnRollouts = Callable[[int, list[dict[str, Any]]], None]


class ToolGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` for one environment made by `environment_factory`.

    Args:
        model: The policy, or its path or hub id.
        args: TRL's config; other keywords are passed to `GRPOTrainer` too.
        environment_factory: The environment class.
        evaluation_factory: That of evaluations, where `eval_dataset` is of another split, or is
            judged in another way; None: the same.
        reference: Path or hub id of the model that a KL penalty holds the policy to; None: the
            model as it is now. An adapter is held to the model below it, whatever is named here.
        control: None, or "shuffled-rewards": every reward goes to a random rollout of the batch, so
            whatever is learnt then is not learnt from the environment.
        on_metrics: Called with the optimizer step and its numbers, whenever TRL logs.
        on_rollouts: Called with the step that a generation batch is for and some of its episodes.
        transcripts: How many episodes of each batch `on_rollouts` gets, from the first group on.

    Raises:
        ConfigurationError: TRL is of a version that was not read (`adapters.trl.versions`), a row
            names a task that the environment does not have, there are too few rows for a
            generation batch, model or reference cannot be loaded, or a keyword goes past the
            environment.
    """

    def __init__(
        self,
        model: Any,
        *,
        args: Any,
        environment_factory: type[RolloutEnvironment],
        evaluation_factory: type[RolloutEnvironment] | None = None,
        reference: Path | str | None = None,
        control: str | None = None,
        on_metrics: OnMetrics | None = None,
        on_rollouts: OnRollouts | None = None,
        transcripts: int = 4,
        **kwargs: Any,
    ) -> None:
        check_version()
        _check(control, kwargs)
        self._evaluation = EvaluationPool(environment_factory, evaluation_factory)
        args = _prepared(args, environment_factory, self._evaluation.environment, kwargs)
        adapter = bool(kwargs.get("peft_config")) or hasattr(model, "peft_config")
        with named_reference(model, args, reference, has_adapter=adapter), _loading(reference):
            super().__init__(
                model=model, args=args, environment_factory=environment_factory, **kwargs
            )
        self._control, self._transcripts = control, transcripts
        self._on_metrics, self._on_rollouts = on_metrics, on_rollouts
        self._workers = Workers(getattr(args, "tool_workers", StableGRPOConfig.tool_workers))
        self._loop: ToolLoop | None = None
        self._synchronised: SynchronisedGeneration | None = None
        self._ends: list[RolloutEnd] = []
        self._played: tuple[list[Figures], list[float]] = ([], [])
        self._read_as_in_evaluation()
        self._evaluation.score_all(self)
        if not any(isinstance(each, FaultStop) for each in self.callback_handler.callbacks):
            self.add_callback(FaultStop(environment_factory))

    def _read_as_in_evaluation(self) -> None:
        env = self._environment_pool[None][0]._playing
        prepare_tokenizer(self._tokenizer, env, self.args)  # TRL may have loaded it by itself
        self.chat_template_kwargs: dict[str, Any] = self.args.chat_template_kwargs or {}
        self._env_tools = {None: env.tool_schemas()}
        self._is_lenient = env.parsing == "lenient"
        if self._is_lenient:
            self._tokenizer: Any = ParsingTokenizer(self._tokenizer, env.tools, self.eos_token_ids)

    def _tool_call_loop(
        self,
        prompts: list[Any],
        prompt_ids: list[list[int]],
        completion_ids: list[list[int]],
        completions: list[list[dict[str, Any]]],
        *rest: Any,
    ) -> Any:
        """TRL's tool loop with parallel tools, stopping each rollout with its episode."""
        if self._is_lenient:
            self._sync_tool_dicts = ParallelToolRunner(
                self.environments, completions, self._workers
            ).tools()
        has_images = any(rest[1:])  # they would have to be sorted too
        if not has_images:
            eos = self._tokenizer.eos_token_id
            self._loop = ToolLoop(self.environments, completions, eos, completion_ids)
        if self._loop is not None and self._generates_together():
            self._synchronised = SynchronisedGeneration(
                lambda n: gather_object([n]), min(prompt_ids, key=len)
            )
        try:
            outcome = super()._tool_call_loop(
                prompts, prompt_ids, completion_ids, completions, *rest
            )
            if self._loop is not None:
                self._loop.mask(outcome[0])
            if self._synchronised is not None:
                self._synchronised.drain(self._trls_turn(None, {}, 1))
        finally:
            self._loop = self._synchronised = None
        tool_mask, messages, ids = outcome[:3]
        ends = {*self.eos_token_ids, self._tokenizer.pad_token_id}
        self._ends = rollout_ends(self.environments, messages, ids, tool_mask, ends)
        return outcome

    def _get_tool_suffix_ids(self, tool_messages: list[dict[str, Any]]) -> list[int]:
        """The tokens between a turn and the next, by the tokens that end turns in this model.

        TRL looks for the tokenizer's end of text alone, and so takes the end of another message for
        that of the call where a call ends with a token of its own.
        """
        if self._is_vlm:
            told: list[int] = super()._get_tool_suffix_ids(tool_messages)
            return told
        function = {"name": tool_messages[0]["name"], "arguments": {}}
        calls = [{"type": "function", "function": function}]
        user = {"role": "user", "content": "dummy"}
        turn = {"role": "assistant", "content": "", "tool_calls": calls}
        told = behind_turn(
            self._rendered([user]),
            self._rendered([user, turn]),
            self._rendered([user, turn, *tool_messages], add_generation_prompt=True),
            self.eos_token_ids,
        )
        return self._loop.without_repetition(told, tool_messages) if self._loop else told

    def _rendered(self, chat: list[dict[str, Any]], **options: Any) -> list[int]:
        """The tokens of a chat by the template that rollouts are played with."""
        ids: Any = self.processing_class.apply_chat_template(
            chat,
            tokenize=True,
            return_dict=False,
            chat_template=self.chat_template,
            **options,
            **self.chat_template_kwargs,
        )
        return list(ids)

    def _generates_together(self) -> bool:
        """Whether generation is collective, so that processes must generate equally often."""
        if self.accelerator.num_processes == 1:
            return False
        is_spread = self.is_deepspeed_enabled or self.is_fsdp_enabled
        return bool(self.use_vllm or is_spread or is_sharded(self.model.parameters()))

    def _generate_single_turn(
        self,
        prompt_ids: Sequences,
        images: Any,
        multimodal_fields: Any,
        num_generations: int,
        **named: Any,
    ) -> Turns:
        """One generated turn per prompt, except where an episode is over."""
        if self._loop is None and self.use_vllm and self.vllm_mode == "server":
            # The server gets one prompt for a group, whose members a fault can make different.
            is_shared = all(gather_object([shared_prompts(prompt_ids, num_generations)]))
            num_generations = num_generations if is_shared else 1
        generate = self._trls_turn(images, multimodal_fields, num_generations, **named)
        if self._loop is None:
            return generate(prompt_ids)
        wrap = self._synchronised.wrap if self._synchronised is not None else local_generation
        return self._loop.generate(prompt_ids, wrap(generate))

    def _trls_turn(self, *args: Any, **named: Any) -> Generate:
        turn: Any = super()._generate_single_turn
        return lambda sequences: turn(sequences, *args, **named)

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
        rollouts = zip(self.environments, early, self._ends, strict=True)
        own = [figures_of(*rollout) for rollout in rollouts]
        weighted = rewards * self.reward_weights.to(rewards.device)
        totals = weighted.nansum(dim=1).masked_fill(rewards.isnan().all(dim=1), math.nan)
        self._played = (gather_object(own), totals.tolist())
        return rewards

    def _shuffled_rows(self, rewards: torch.Tensor) -> list[int]:
        """The row whose reward each rollout gets; unscored rollouts keep theirs."""
        rows = list(range(len(rewards)))
        scored = [row for row in rows if not torch.isnan(rewards[row]).all()]
        shuffled = list(scored)
        random.Random(f"toolgym-control-{self.args.seed}-{self._step}").shuffle(shuffled)
        for row, other in zip(scored, shuffled, strict=True):
            rows[row] = other
        return rows

    def _generate_and_score_completions(self, inputs: Rows) -> dict[str, Any]:
        draw = self._play_rows(inputs)
        self._report_rollouts()
        self._note("train" if self.model.training else "eval", self._metrics_of([draw]))
        return draw.batch

    def _play_rows(self, inputs: Rows) -> PlayedBatch:
        """Play some rows of this process, once, as TRL does."""
        if self.model.training:
            batch = super()._generate_and_score_completions(inputs)
        else:
            with self._evaluation.in_place(self):
                batch = super()._generate_and_score_completions(inputs)
        figures, rewards = self._played
        return PlayedBatch(batch, figures, rewards, self.accelerator.process_index * len(inputs))

    def _metrics_of(self, draws: Sequence[PlayedBatch]) -> dict[str, float]:
        """The metrics of all rollouts played for a generation batch."""
        size = self.num_generations if self.model.training else self.num_generations_eval
        figures = [figure for draw in draws for figure in draw.figures]
        rewards = [reward for draw in draws for reward in draw.rewards]
        return batch_metrics(figures, rewards, [row // size for row in range(len(figures))])

    def _note(self, mode: str, numbers: dict[str, float]) -> None:
        """Add metrics to those that TRL will log."""
        for name, number in numbers.items():
            self._metrics[mode][PREFIX + name].append(number)

    def _report_rollouts(self) -> None:
        """Report some episodes, before the environments begin others."""
        if self._on_rollouts and self.model.training and self.accelerator.is_main_process:
            some = [environment._played() for environment in self.environments[: self._transcripts]]
            env_id = type(self.environments[0])._env_id
            shown = [
                EpisodeRecord.of(env.episode, env_id).to_json() for env in some if env is not None
            ]
            self._on_rollouts(self.state.global_step + 1, shown)

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train, as TRL does, and end the threads of the tools with it."""
        with self._workers:
            return super().train(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Evaluate as TRL does, with random numbers of its own."""
        seed = self.args.seed + self.accelerator.process_index
        with own_random_numbers(seed, self.accelerator.device):
            figures: dict[str, float] = super().evaluate(*args, **kwargs)
        return figures

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log as TRL does, then report the step's metrics under our names."""
        training = "loss" in logs
        super().log(logs, start_time)
        if training and self._on_metrics and self.accelerator.is_main_process:
            self._on_metrics(self.state.global_step, self._metrics_of_log(logs))

    def _metrics_of_log(self, logs: dict[str, float]) -> dict[str, float]:
        """The metrics for `on_metrics`, from TRL's log."""
        return step_metrics(logs)


@contextmanager
def _loading(reference: Path | str | None) -> Iterator[None]:
    """A context that names the model which cannot be loaded."""
    try:
        yield
    except OSError as problem:
        named = f" or the reference {str(reference)!r}" if reference is not None else ""
        raise ConfigurationError(
            f"the model{named} cannot be loaded: give a folder that save_pretrained wrote, or an id"
            f" of the hub. {problem}"
        ) from problem


def _prepared(
    args: Any,
    environment_factory: type[RolloutEnvironment],
    evaluation: type[RolloutEnvironment],
    keywords: Mapping[str, Any],
) -> Any:
    """The config for this environment, after checks of data sets and tokenizer."""
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # it warns of environment_factory
    env = environment_factory._sample()
    check_tasks(keywords.get("train_dataset"), env, "train_dataset")
    check_tasks(keywords.get("eval_dataset"), evaluation._sample(), "eval_dataset")
    made = fitted(args, env.step_limit)
    check_rows(keywords.get("train_dataset"), made)
    if keywords.get("processing_class") is not None:
        prepare_tokenizer(keywords["processing_class"], env, made)
    return made


def _check(control: str | None, keywords: Mapping[str, Any]) -> None:
    """Check that no keyword bypasses the environment, and that the control exists."""
    if control not in (None, SHUFFLED_REWARDS):
        raise ConfigurationError(f"control must be None or {SHUFFLED_REWARDS!r}, got {control!r}.")
    if keywords.get("tools") or keywords.get("rollout_func"):
        raise ConfigurationError(
            "tools and rollout_func go past the environment, which would neither see nor score"
            " them: make each tool a @tool of the environment."
        )
