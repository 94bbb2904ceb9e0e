"""A sample of rollouts as training would play them: the same tasks, temperature and room.

Every task is tried several times, since what matters is not how good the model is but whether its
tries at one task differ. A rollout may use as many tokens as in training, results of tools
included, and is cut off where they end. As many are played side by side as a step has, so that the
time of a batch is the time of a step's rollouts.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.algorithms.groups import SIZES, Counts, by_group, counts_of, live_share
from adapters.training.algorithms.rollout_metrics import Figures, batch_metrics
from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.models.demonstrations import playable_tasks
from adapters.training.models.token_log_probs import passes, token_log_probs
from adapters.training.models.tokenized_examples import Example
from adapters.training.settings import TrainSettings
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.episode import Outcome
from toolgym.errors import EnvironmentFault
from toolgym.messages import Message, episode_messages
from toolgym.policies import Situation
from toolgym.records import EpisodeRecord
from toolgym.tasks import seed_of
from toolgym.tries import Try, seed_of_try, tries_of

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Played:
    """One rollout.

    Attributes:
        record: The episode.
        messages: The whole transcript, a turn that was cut off included.
        written: Tokens that the model wrote.
        cut_off: The tokens ran out inside a turn.
        unfinished: They ran out before the episode was over, inside a turn or between two.
    """

    record: EpisodeRecord
    messages: list[Message]
    written: int
    cut_off: bool
    unfinished: bool

    @property
    def outcome(self) -> Outcome | None:
        """Its outcome; None where a fault left it unscored."""
        return self.record.outcome


@dataclass
class _Open:
    """A rollout that is being played."""

    situation: Situation
    room: int
    written: int = 0
    last_words: str | None = None
    unfinished: bool = False

    @property
    def over(self) -> bool:
        return self.situation.env.episode.over


@dataclass(frozen=True)
class SamplePlayed:
    """The sample.

    Attributes:
        rollouts: Tries of one task stand together.
        tries: Of each task.
        batch_seconds: The time of each batch of a step's size.
        batch: Rollouts of a full batch.
    """

    rollouts: tuple[Played, ...]
    tries: int
    batch_seconds: tuple[float, ...]
    batch: int

    @property
    def groups(self) -> list[int]:
        """For each rollout the number of its task."""
        return [place // self.tries for place in range(len(self.rollouts))]


def play_sample(
    settings: TrainSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tasks: int,
    tries: int,
    progress: Progress,
) -> SamplePlayed:
    """Play several tries of each of some training tasks.

    Args:
        tasks: How many; fewer where there are fewer.
        tries: Of each.
        progress: Called with how many rollouts are done.

    Raises:
        ConfigurationError: No task is playable.
        EnvironmentFault: What an episode needs is not there.
    """
    env = registration.make(settings.env_id, **settings.training_kwargs)
    chosen = playable_tasks(env.tasks, tasks, settings.seed).ids
    named = tries_of(task_id for task_id in chosen for _ in range(tries))
    batch = min(settings.group_size * settings.prompts, len(named))
    policy = ChatModelPolicy(
        model,
        tokenizer,
        temperature=settings.temperature,
        max_new_tokens=settings.max_completion_length,
        batch=batch,
        seed=settings.seed,
    )
    played, seconds = list[Played](), list[float]()
    table = _Table(settings, policy)
    for start in range(0, len(named), batch):
        began = time.monotonic()
        played += table.play(named[start : start + batch])
        seconds.append(time.monotonic() - began)
        progress(len(played))
    return SamplePlayed(tuple(played), tries, tuple(seconds), batch)


class _Table:
    """The environments of a batch, used again for the next."""

    def __init__(self, settings: TrainSettings, policy: ChatModelPolicy) -> None:
        self._settings, self._policy = settings, policy
        self._envs: list[ToolEnv[Any]] = []

    def play(self, tries: Sequence[Try]) -> Iterator[Played]:
        """One episode for each try, in lock step."""
        opened = [self._begin(place, one) for place, one in enumerate(tries)]
        while playing := [each for each in opened if not each.over]:
            actions = self._policy.act([each.situation for each in playing])
            for each, action in zip(playing, actions, strict=True):
                self._advance(each, action)
        for each, one in zip(opened, tries, strict=True):
            env, own = each.situation.env, each.situation.seed
            messages = episode_messages(env, final=each.last_words)
            record = EpisodeRecord.of(env.episode, self._settings.env_id, own, one.number)
            was_cut_off = each.last_words is not None
            yield Played(record, messages, each.written, was_cut_off, each.unfinished)

    def _begin(self, place: int, one: Try) -> _Open:
        if place == len(self._envs):
            made = registration.make(self._settings.env_id, **self._settings.training_kwargs)
            self._envs.append(made)
        env = self._envs[place]
        observation, _ = env.reset(seed=seed_of(one.task_id), options={"task_id": one.task_id})
        own = seed_of_try(self._settings.seed, one.task_id, one.number)
        situation = Situation(env, observation, own)
        return _Open(situation, self._settings.max_completion_length)

    def _advance(self, each: _Open, action: str) -> None:
        """One turn; what does not fit is not done, and ends the episode."""
        env = each.situation.env
        spoken = self._length(action)
        each.written += spoken
        each.room -= spoken
        if each.room <= 0:
            each.last_words = action
        else:
            try:
                each.room -= self._length(env.step(action)[0])
            except EnvironmentFault:
                return  # the episode is over and unscored
        if each.room <= 0 and not env.episode.over:
            each.unfinished = True
            env.finish()

    def _length(self, text: str) -> int:
        """Tokens of a text, and one for the end of its message."""
        ids = self._policy.tokenizer(text, add_special_tokens=False)["input_ids"]
        return len(ids) + 1


# What the model's own numbers say before training: how unsure it is, and what an update costs.
#
# Entropy is taken where it matters, at the tokens that the model wrote, in their context. The time
# of an update is that of one forward and one backward pass over transcripts of the sample; the
# optimizer's own work, and a reference model, come on top.

_LOOKED_AT = 64  # transcripts; with them the mean entropy is known to a few per cent
AT_ONCE = 8  # transcripts in a pass of the update
_TOKENS = 8192  # tokens of a pass


def entropy_of(model: PreTrainedModel, examples: Sequence[Example], temperature: float) -> float:
    """Mean entropy at the learnt tokens, in nats; nan where there is none.

    Args:
        examples: What it wrote in their context; at most 64 of them are looked at, evenly chosen.
        temperature: Of the distribution that tokens were drawn from.
    """
    chosen = examples[:: max(1, math.ceil(len(examples) / _LOOKED_AT))]
    entropies: list[Tensor] = []
    was_training = model.training
    model.train(False)
    with torch.inference_mode():
        for part in passes(chosen, _TOKENS, model):
            texts = [chosen[place] for place in part]
            entropies.append(token_log_probs(model, texts, temperature=temperature)[1])
    model.train(was_training)
    return float(torch.cat(entropies).mean()) if entropies else math.nan


def update_seconds(model: PreTrainedModel, examples: Sequence[Example], rollouts: int) -> float:
    """Seconds of the forward and backward passes over as many rollouts as a step has.

    Weights, and the random state of PyTorch, stay as they are; gradients are None afterwards.

    Args:
        examples: Transcripts of typical length.

    Returns:
        nan where the passes do not fit into memory, or there is no transcript.
    """
    batch = examples[:: max(1, len(examples) // AT_ONCE)][:AT_ONCE]
    if not batch:
        return math.nan
    was_training = model.training
    model.train()
    try:
        with torch.random.fork_rng():
            seconds = min(_seconds(model, batch) for _ in range(2))  # the first one warms up
    except torch.OutOfMemoryError:
        seconds = math.nan
    finally:
        model.zero_grad(set_to_none=True)
        model.train(was_training)
        if model.device.type == "cuda":
            torch.cuda.empty_cache()  # it belongs to the training
    return seconds * rollouts / len(batch)


def _seconds(model: PreTrainedModel, batch: Sequence[Example]) -> float:
    """Seconds of the forward and backward passes over some transcripts."""
    _wait(model.device)
    began = time.monotonic()
    for part in passes(batch, None, model):
        log_probs, _ = token_log_probs(model, [batch[place] for place in part])
        log_probs.sum().backward()  # type: ignore[no-untyped-call]
    _wait(model.device)
    return time.monotonic() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# The figures of a sample of rollouts, under the names of `metrics.jsonl` where they are the same.
#
# `signal` tells for each group size how many groups would have members with different outcomes, and
# `live` how many would have right and wrong ones; both are taken over all subsets of the tries, so
# that eight tries of a task speak for groups of two, four and eight. Beyond the tries, `live` is
# extrapolated from the spread of the success rates, and `signal` is what the tries alone have
# shown.

_NULL: Final = re.compile(r"[:=]\s*(?:null|None)\b")


@dataclass(frozen=True)
class SampleFigures:
    """The metrics of a sample.

    Attributes:
        numbers: By name; nan where there is nothing to be a share of.
        counts: Right and scored tries of each task.
        signal: By group size the share of groups with different outcomes.
        live: By group size the share of groups with right and wrong members.
        errors: How often each error code was told, the most frequent first.
        repairs: The same for repairs.
        example: A turn whose call failed, else one that needed a repair, else the first.
        records: The scored episodes.
    """

    numbers: dict[str, float]
    counts: tuple[Counts, ...]
    signal: dict[int, float]
    live: dict[int, float]
    errors: dict[str, int]
    repairs: dict[str, int]
    example: str
    records: tuple[EpisodeRecord, ...]


def figures_of(sample: SamplePlayed, sizes: Iterable[int] = SIZES) -> SampleFigures:
    """All figures of a sample.

    Args:
        sample: What was played.
        sizes: Group sizes that are asked about.
    """
    outcomes = [played.outcome for played in sample.rollouts]
    groups = by_group(outcomes, sample.groups).values()
    turns = [turn for played in sample.rollouts for turn in played.record.turns]
    counts = tuple(counts_of(members) for members in groups)
    return SampleFigures(
        numbers=_numbers(sample, turns),
        counts=counts,
        signal={size: _mean([_differing(m, size) for m in groups]) for size in sizes},
        live={size: live_share(counts, size) for size in sizes},
        errors=_count(code for turn in turns for code in turn["errors"]),
        repairs=_count(code for turn in turns for code in turn["repairs"]),
        example=_example(turns),
        records=tuple(p.record for p in sample.rollouts if p.record.scored),
    )


def _numbers(sample: SamplePlayed, turns: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The metrics that a step of this sample would have, and those of the preflight alone."""
    figures = [
        Figures.of(
            played.record,
            written=played.written,
            stopped_early=played.cut_off,  # a turn that was cut off was never read
            clipped=played.cut_off,
            unfinished=played.unfinished,
        )
        for played in sample.rollouts
    ]
    rewards = [played.record.score for played in sample.rollouts]
    with_calls = [turn["action"] for turn in turns if turn["calls"]]
    return {
        "rollouts": float(len(rewards)),
        **batch_metrics(figures, rewards, sample.groups),
        "reward_min": min(filter(math.isfinite, rewards), default=math.nan),
        "null_arguments": _mean([_NULL.search(text) is not None for text in with_calls]),
    }


def _differing(outcomes: Sequence[Outcome | None], size: int) -> float:
    """The share of subsets of one task's scored tries in which outcomes differ."""
    counts = Counter(outcome for outcome in outcomes if outcome is not None)
    size = min(size, counts.total())
    if size < 2:
        return 0.0
    alike = sum(math.comb(count, size) for count in counts.values())
    return 1.0 - alike / math.comb(counts.total(), size)


def _example(turns: Sequence[dict[str, Any]]) -> str:
    for key in ("errors", "repairs", "action"):
        action = next((turn["action"] for turn in turns if turn[key]), None)
        if action is not None:
            return str(action)
    return ""


def _count(codes: Iterable[str]) -> dict[str, int]:
    return dict(Counter(codes).most_common())


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
