"""`Rollouts`: a `rollout_func` for TRL, with a reward function, that plays the rollouts.

TRL requests the rollouts of a generation batch. `adapters.reference.play` plays the rollouts: the
environment receives the text of each turn as the model wrote it and decides when the episode ends.
Dynamic sampling replaces dead groups before the rollouts are passed to TRL. TRL computes advantages
and the loss. `env_mask` excludes tool results and discarded rollouts from the loss.
"""

from __future__ import annotations

import itertools
import math
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from accelerate.utils import AutocastKwargs, gather_object
from torch.distributed.tensor import DTensor

from adapters.reference.play import Player, Rollout, is_in_loss, outcomes, shuffle_rewards
from adapters.training.algorithms.dynamic_sampling import TaskStream, fill
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from adapters.training.guards.fault_limit import FaultLimit
from adapters.training.models.demonstrations import playable_tasks
from adapters.training.models.memory_needs import Load, bytes_of_update
from adapters.trl.config import check_sampling, split_groups
from adapters.trl.loss_check import LossCheck
from adapters.trl.vllm_engine import VllmEngine
from toolgym import registration
from toolgym.errors import ConfigurationError
from toolgym.records import EpisodeRecord
from toolgym.tries import seed_of_try

if TYPE_CHECKING:
    from datasets import Dataset

PREFIX = "toolgym/"
"""Prefix of toolgym's metrics in TRL's log."""


class Rollouts:
    """The rollouts of a `GRPOTrainer`. Pass an instance as `rollout_func`.

    Without vLLM, `toolgym.generation` samples tokens with the policy's own weights. The
    log-probabilities at sampling are not used in TRL's loss, which uses a ratio of 1 for the first
    update. The metric `mismatch` reports how far the log-probabilities of sampling and training
    differ. With `use_vllm=True`, `trainer.vllm_generation` samples the tokens, and TRL corrects for
    the difference in log-probabilities.

    Args:
        env_id: Id of a registered `ToolEnv`.
        env_kwargs: Arguments of the environment.
        max_draws: Limit of dynamic sampling, which replaces groups whose rollouts all had the same
            outcome. The number of groups played for a generation batch is at most this multiple of
            the number of groups in the batch. None disables dynamic sampling.
        control: Control run. `shuffled-rewards` shuffles rewards among rollouts, so that the model
            cannot learn from them.
        workers: Number of threads that run the tools of different rollouts.

    Attributes:
        metrics: Metrics of the last batch over all processes (`toolgym.runs.metrics`).
        episodes: The episodes that this process played for the last batch.
        logged_with_next: Other metrics for TRL's log, which are added to those of the next batch.

    Raises:
        ConfigurationError: If the environment cannot be made.
    """

    def __init__(
        self,
        env_id: str,
        env_kwargs: Mapping[str, Any] | None = None,
        *,
        max_draws: float | None = 3.0,
        control: Literal["shuffled-rewards"] | None = None,
        workers: int = 16,
    ) -> None:
        if max_draws is not None and not max_draws >= 1:
            raise ConfigurationError(f"max_draws must be at least 1, or None; got {max_draws}.")
        if control not in (None, "shuffled-rewards"):
            raise ConfigurationError(
                f"control must be None or 'shuffled-rewards', got {control!r}."
            )
        self.env_id, self.env_kwargs = env_id, dict(env_kwargs or {})
        self.metrics: dict[str, float] = {}
        self.episodes: list[EpisodeRecord] = []
        self.logged_with_next: dict[str, float] = {}
        self.ended = 0.0  # time at which the last batch was complete
        self._max_draws, self._control, self._workers = max_draws, control, workers
        self._tasks = registration.make(env_id, **self.env_kwargs).tasks
        self._known = {*self._tasks.ids}
        self._player: Player | None = None
        self._trainer: Callable[[], Any] = lambda: None  # a weak reference
        self._check: LossCheck | None = None
        self._faults: FaultLimit | None = None
        self._refills: TaskStream | None = None
        self._refill_ids: list[str] = []
        self._walked: dict[str, Any] | None = None  # state of the refills in a checkpoint
        self._step, self._groups, self._filler = -1, 0, 0
        self._returned: list[list[int]] = []
        self._is_training = True
        self._rows: list[_Row] = []  # since the last call of `take_metrics`
        self._counts: Any = Counter()

    def dataset(self, n: int | None = None, *, seed: int = 0) -> Dataset:
        """Return the training data set, whose rows each have a task id as the prompt.

        A task is checked before it is played. If a task is not playable, the next playable task of
        the data set is played instead.

        Args:
            n: Number of rows. If there are fewer than `n` tasks, they are repeated in different
                orders. None means each task once.
            seed: Seed of the order.

        Raises:
            ConfigurationError: If no task is playable, or `n` is below 1.
        """
        from datasets import Dataset

        tasks = self._tasks
        # Raises an error if there is none.
        playable_tasks(tasks, 1 if n is None else min(n, 1), seed)
        if n is None:
            ids = tasks.shuffle(seed).ids
        else:
            ids = [tasks[place].id for place in TaskStream(len(tasks), seed=seed).take(n)]
        return Dataset.from_dict({"prompt": ids})

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Play the rollouts of a generation batch. TRL calls this in each process.

        Args:
            prompts: Prompts of `dataset`, one per rollout.
            trainer: The `GRPOTrainer`.

        Returns:
            The lists `prompt_ids`, `completion_ids`, `logprobs` and `env_mask`, each with one list
            per rollout, and the columns `score` and `task_id` for reward functions. The score is
            None if the environment failed.

        Raises:
            ConfigurationError: If the trainer's settings, model, chat template or data set cannot
                be used.
            EnvironmentFault: If the environment keeps failing.
        """
        began = time.perf_counter()
        player = self._player
        if player is None or self._trainer() is not trainer:
            player = self._prepare(trainer, prompts[0])
        args, accelerator, is_training = trainer.args, trainer.accelerator, trainer.model.training
        mode = "train" if is_training else "eval"
        size = trainer.num_generations if is_training else trainer.num_generations_eval
        task_ids = [self._task_id(prompt) for prompt in prompts]
        if task_ids != [task for task in task_ids[::size] for _ in range(size)]:
            if is_training:
                raise ConfigurationError(split_groups(len(task_ids), size))
            size = 1
        waiting = task_ids[::size]
        step = trainer.state.global_step
        if is_training and step != self._step:
            self._step, self._groups = step, 0
        numbers = itertools.count(self._groups if is_training else 0)
        played: list[Rollout] = []

        def draw(count: int) -> list[list[Rollout]]:
            """Play one group per task: first the tasks of the data set, then replacements."""
            tasks = waiting[:count]
            del waiting[:count]
            tasks += [self._refill_ids[i] for i in self._refill_tasks(trainer, count - len(tasks))]
            rollouts = []
            for task in tasks:
                group = accelerator.num_processes * next(numbers) + accelerator.process_index
                name = f"{mode}-{args.seed}-{step}-{group}"
                playable = self._tasks.playable_from(task).id
                seed = seed_of_try(args.seed, playable, step)
                rollouts += [Rollout(playable, group, f"{name}-{m}", seed) for m in range(size)]
            with _autocast(trainer):
                player.play(
                    rollouts, max_tokens=args.max_completion_length, temperature=args.temperature
                )
            if self._control is not None and is_training:
                shuffle_rewards(rollouts, f"{args.seed}-{step}-{rollouts[0].group}")
            played.extend(rollouts)
            return [rollouts[start : start + size] for start in range(0, len(rollouts), size)]

        places, unfinished = len(waiting), not args.mask_truncated_completions
        sampling: dict[str, float] = {}
        if is_training and self._max_draws is not None:
            filled = fill(
                places,
                self._max_draws,
                draw,
                lambda group: outcomes(group, unfinished),
                lambda tally: gather_object([tally]),
            )
            groups, live, sampling = [*filled.live, *filled.dead], len(filled.live), filled.metrics
        else:
            groups = draw(places)
            live = len(groups)
        output: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for index, group in enumerate(groups):
            for rollout in group:
                tokens = rollout.tokens
                # TRL excludes completions that do not end with the end of a turn, even if they are
                # finished.
                is_cut = tokens.tokens[-1:] and tokens.tokens[-1] not in player.stop
                is_learned = is_in_loss(rollout, unfinished) and (unfinished or not is_cut)
                row = (  # excludes empty lists, which TRL does not accept
                    tokens.prompt or [self._filler],
                    tokens.tokens or [self._filler],
                    tokens.log_probs or [0.0],
                    (tokens.mask if is_learned and index < live else [0] * len(tokens.mask)) or [0],
                    rollout.reward if math.isfinite(rollout.reward) else None,
                    rollout.task_id,
                )
                for name, value in zip(_COLUMNS, row, strict=True):
                    output[name].append(value)
        self._returned, self._is_training = output["completion_ids"], is_training
        learned = math.fsum(map(sum, output["env_mask"]))
        rows, counts = _gathered(played, {**sampling, "learnt_tokens": learned})
        self.episodes = [each.episode for each in played if each.episode is not None]
        self.ended = time.perf_counter()
        counts["rollout_seconds"] = self.ended - began
        self.metrics = _metrics(rows, counts)
        if is_training:
            self._rows += rows
            self._counts.update(counts)
            self._groups = next(numbers)
            if self._faults is None:
                self._faults = FaultLimit(trainer.state.max_steps)
            self._faults.note(step + 1, len(rows), [row.fault for row in rows if row.fault])
            if self._check is None:
                self._check = LossCheck(trainer)
            self._check.expect(output, size)
        return output

    def score(
        self,
        completion_ids: Sequence[Sequence[int]],
        score: list[float | None],
        log_metric: Callable[[str, float], None],
        **_: Any,
    ) -> list[float | None]:
        """Return the score of each rollout and log the metrics. Pass it as `reward_funcs`.

        Raises:
            ConfigurationError: If TRL requests the rewards of rollouts other than those that were
                generated.
        """
        if list(map(list, completion_ids)) != self._returned:
            raise ConfigurationError(
                "TRL requests the rewards of other completions than `Rollouts` returned, so scores"
                " would be assigned to the wrong rollouts. Pass the same object to one trainer as"
                " rollout_func=rollouts and reward_funcs=rollouts.score."
            )
        known = [each for each in score if each is not None]
        own = {"score": math.fsum(known) / len(known)} if known else {}
        others = self.logged_with_next if self._is_training else {}
        for name, value in {**self.metrics, **others, **own}.items():
            if math.isfinite(value):
                log_metric(f"{PREFIX}{name}", value)
        return score

    def take_metrics(self) -> dict[str, float]:
        """Return the metrics of all batches since the last call, empty if there was none."""
        if not self._rows:
            return {}
        metrics = _metrics(self._rows, self._counts)
        self._rows, self._counts = [], Counter()
        if self._check is not None:
            metrics |= self._check.take_mismatch()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, in JSON types."""
        return {"refills": self._refills.state_dict() if self._refills else self._walked}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        self._walked, self._refills = state["refills"], None

    def _task_id(self, prompt: Any) -> str:
        if not isinstance(prompt, str) or prompt not in self._known:
            raise ConfigurationError(
                f"{str(prompt)[:80]!r} is not a task of {self.env_id} with these arguments. Make"
                " the data set with `rollouts.dataset()`. Evaluate other splits with `toolgym"
                " eval`, or with a separate `Rollouts` and trainer."
            )
        return prompt

    def _prepare(self, trainer: Any, prompt: Any) -> Player:
        """Check a trainer's settings, and make the player with its model and tokenizer."""
        check_sampling(trainer.args)
        if trainer.tools:
            raise ConfigurationError(
                "TRL would run its own tool loop after each rollout, but `Rollouts` plays whole"
                " episodes. Remove tools and environment_factory."
            )
        model = trainer.model
        is_sharded = trainer.is_fsdp_enabled or any(
            isinstance(each, DTensor) or hasattr(each, "ds_id") for each in model.parameters()
        )
        if is_sharded and not trainer.use_vllm:
            raise ConfigurationError(
                "the model is sharded over processes (FSDP or ZeRO-3), so `Rollouts` can only"
                " generate with vLLM. Set use_vllm=True, or do not shard the model (DDP, LoRA)."
            )
        # With peft, the layers of the adapter are in the base model.
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        self._filler = tokenizer.eos_token_id
        player = Player(
            model,
            tokenizer,
            self.env_id,
            self.env_kwargs,
            workers=self._workers,
            engine=VllmEngine(trainer, self._filler) if trainer.use_vllm else None,
            template_options=trainer.args.chat_template_kwargs,
        )
        task_id = self._tasks.playable_from(self._task_id(prompt)).id
        player.check(task_id, with_model=False)  # the engine supports every model
        args, length = trainer.args, trainer.args.max_completion_length
        adapters = getattr(trainer.model, "peft_config", {}).values()
        load = Load(
            dtype="bfloat16" if args.bf16 else "float32",
            adapter_rank=max((getattr(each, "r", 0) for each in adapters), default=0),
            tokens_per_pass=args.per_device_train_batch_size
            * (player.prompt_length(task_id) + length),
            has_checkpointing=bool(
                args.gradient_checkpointing or getattr(args, "activation_checkpointing", False)
            ),
        )
        count = sum(parameter.numel() for parameter in model.parameters())
        player.engine.reserved = bytes_of_update(model.config, count, load)
        self._player, self._trainer = player, weakref.ref(trainer)
        self._check = self._faults = self._refills = None
        self._step, self._rows, self._counts = -1, [], Counter()
        return player

    def _refill_tasks(self, trainer: Any, count: int) -> list[int]:
        if count < 1:
            return []
        if self._refills is None:
            rows = trainer.train_dataset
            if not hasattr(rows, "__len__"):
                raise ConfigurationError(
                    "dynamic sampling draws tasks by their number, so it needs a data set with a"
                    " length: make it with `rollouts.dataset()`, or set max_draws=None."
                )
            ids = list(dict.fromkeys(map(self._task_id, rows["prompt"])))
            self._refill_ids = ids
            self._refills = TaskStream(
                len(ids),
                seed=trainer.args.seed,
                name="refill",
                process=trainer.accelerator.process_index,
                processes=trainer.accelerator.num_processes,
            )
            if self._walked is not None:
                self._refills.load_state_dict(self._walked)
        return self._refills.take(count)


class _Row(NamedTuple):
    """The results of one rollout, for all processes."""

    figures: Figures
    reward: float
    group: int
    fault: str
    surprise: float  # sum of -log p over the sampled tokens
    sampled: int  # number of sampled tokens with a log-probability


def _gathered(played: Sequence[Rollout], counts: Mapping[str, float]) -> tuple[list[_Row], Any]:
    """Return the results of the rollouts and the sums of the counts of all processes."""
    own = []
    for each in played:
        values = [
            log_prob
            for log_prob, sampled in zip(each.tokens.log_probs, each.tokens.mask, strict=True)
            if sampled and not math.isnan(log_prob)
        ]
        surprise = -math.fsum(values)
        own.append(_Row(each.figures, each.reward, each.group, each.fault, surprise, len(values)))
    gathered = gather_object([(own, counts)])
    sums: Any = Counter()
    for _, each in gathered:
        sums.update(each)
    if "sampling_rounds" in sums:  # every process has the same number
        sums["sampling_rounds"] /= len(gathered)
    return [row for rows, _ in gathered for row in rows], sums


def _metrics(rows: Sequence[_Row], counts: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of rollouts, with counts named as in `toolgym.runs.metrics`.

    The entropy is estimated by the mean of -log p over the sampled tokens.
    """
    figures, rewards, groups, _, surprise, sampled = zip(*rows, strict=True)
    entropy = math.fsum(surprise) / sum(sampled) if sum(sampled) else math.nan
    return {**batch_metrics(figures, rewards, groups), **counts, "entropy": entropy}


_COLUMNS: Final = ("prompt_ids", "completion_ids", "logprobs", "env_mask", "score", "task_id")


def _autocast(trainer: Any) -> AbstractContextManager[Any]:
    """Return a context with the precision of TRL's forward passes, if the model does not set it.

    accelerate changes the `forward` of the model that it prepares, but not that of the base model
    of an adapter. Casts are not cached, since a recorded CUDA graph would keep them.
    """
    if not hasattr(trainer.model, "get_base_model"):
        return nullcontext()
    handler = AutocastKwargs(cache_enabled=False)
    return trainer.accelerator.autocast(autocast_handler=handler)  # type: ignore[no-any-return]
