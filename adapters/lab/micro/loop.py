"""Reinforcement learning of the micro-model: sample, play, compare, update, and take note.

The estimators are those of `adapters.training.algorithms.advantages`, the losses those of
`adapters.reference.losses`, dynamic sampling that of
`adapters.training.algorithms.dynamic_sampling`: what is found here is found about the code that
trains larger models. A step that learns nothing (every advantage is 0, or the guard leaves it out)
moves no weight, Adam's momentum included.

Rollouts of a group stand together in a `Batch`. Dynamic sampling sorts groups and joins them anew,
so batches can be cut into groups and put together again; how long their completions are may differ.

What is written down of each step has no clock in it; the same config and seed give the same
numbers on one machine, with one thread.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from adapters.lab.micro import world
from adapters.lab.micro.model import MicroModel, Sampled, prompts_of, read, sample
from adapters.lab.micro.start import STEPS, started
from adapters.lab.micro.tokens import is_prose, text_of
from adapters.lab.micro.world import Ending
from adapters.reference.losses import (
    LossConfig,
    Totals,
    aggregate,
    loss_config,
    penalized_rewards,
    policy_loss,
)
from adapters.training.algorithms.advantages import advantages
from adapters.training.algorithms.dynamic_sampling import (
    DynamicSampling,
    Filling,
    SamplingConfig,
    TaskStream,
)
from adapters.training.algorithms.groups import dead_share, equal_rewards_share
from toolgym.episode import Outcome

CLIP_NORM: Final = 1.0
BETAS: Final = (0.9, 0.98)
Plain = Literal["k1", "k3"]


@dataclass(frozen=True)
class MicroConfig:
    """One training. Everything is a plain value, so that a config is JSON."""

    group_size: int = 8
    prompts: int = 4
    """Groups of a step."""
    updates: int = 60
    learning_rate: float = 1e-3
    optimizer: Literal["adam", "matched"] = "adam"
    """`matched`: every step moves the weights by the same length, `learning_rate`, along the
    gradient, so that estimators of different scale take steps of one size."""
    estimator: str = "group_normalized"
    limit: float | None = None
    """Advantages are cut off at this."""
    negatives: bool = True
    """False: advantages below 0 become 0."""
    loss: str = "grpo"
    loss_changes: Mapping[str, Any] = field(default_factory=dict)
    plain_kl: Plain | None = None
    """The divergence is charged by this estimate differentiated as it is written, and not by that
    of the loss, whose expected gradient is exact; its price is still the loss's `beta`."""
    passes: int = 1
    """Updates from one batch."""
    rewards: world.Rewards = "score"
    fallback: str | None = None
    """The workflow that is paid in place of a text that is none."""
    skip_fallback: bool = False
    """A batch without a single valid workflow is left out."""
    draws: float | None = None
    """Dynamic sampling: groups that a step may draw, as a multiple of `prompts`."""
    temperature: float = 1.0
    start_prose: float = 0.05
    start_steps: int = STEPS
    start_shown: int | None = None
    """See `start.started`."""
    tasks: tuple[int, ...] = tuple(range(world.TASKS))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> MicroConfig:
        """The settings in the config of a cell, in which other things may stand as well."""
        known = {each.name for each in fields(cls)}
        found = {key: value for key, value in values.items() if key in known}
        if "tasks" in found:
            found["tasks"] = tuple(found["tasks"])
        return cls(**found)


@dataclass(frozen=True)
class Batch:
    """Rollouts; all lists are as long as there are completions.

    Attributes:
        group_size: Rollouts of a group; groups stand one behind the other.
        masked: Groups at the end that only fill places, and teach nothing.
    """

    sampled: Sampled
    texts: list[str]
    tasks: list[int]
    endings: list[Ending]
    rewards: list[float]
    group_size: int
    masked: int = 0

    @property
    def groups(self) -> list[int]:
        """The number of each rollout's group."""
        return [number // self.group_size for number in range(len(self.texts))]

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that tell the members of a group apart."""
        return [Outcome(ending.correct, round(10 * ending.progress)) for ending in self.endings]

    @property
    def learning(self) -> int:
        """The number of rollouts, from the first, that teach something."""
        return len(self.texts) - self.masked * self.group_size


def told(batch: Batch, lead: Tensor) -> dict[str, float]:
    """The numbers of a batch with its advantages [N], from before its update."""
    count = len(batch.texts)
    return {
        "reward": math.fsum(batch.rewards) / count,
        "score": math.fsum(ending.score for ending in batch.endings) / count,
        "accuracy": sum(ending.correct for ending in batch.endings) / count,
        "valid": sum(ending.valid for ending in batch.endings) / count,
        "prose": sum(map(is_prose, batch.texts)) / count,
        "distinct": len(set(batch.texts)) / count,
        "length": float(batch.sampled.mask.sum()) / count,
        "dead_groups": dead_share(batch.outcomes, batch.groups),
        "equal_rewards": equal_rewards_share(batch.rewards, batch.groups),
        "advantage": float(lead.abs().max()),
    }


def chosen(batch: Batch, filling: Filling) -> tuple[list[Batch], list[Batch]]:
    """Those groups of a draw that dynamic sampling keeps, and those it holds in reserve."""
    size, outcomes = batch.group_size, batch.outcomes
    starts = range(0, len(outcomes), size)
    choice = filling.offer([outcomes[start : start + size] for start in starts])
    groups = [_part(batch, slice(start, start + size)) for start in starts]
    return [groups[i] for i in choice.keep], [groups[i] for i in choice.spare]


def joined(parts: Sequence[Batch], masked: int) -> Batch:
    """Several batches of groups of one size as one, the last `masked` groups of which are idle."""
    longest = max(part.sampled.tokens.shape[1] for part in parts)
    sampled = Sampled(
        torch.cat([part.sampled.prompts for part in parts]),
        *(
            torch.cat([pad(table, (0, longest - table.shape[1])) for table in tables])
            for tables in zip(*(part.sampled[1:] for part in parts), strict=True)
        ),
    )
    return Batch(
        sampled,
        [text for part in parts for text in part.texts],
        [task for part in parts for task in part.tasks],
        [ending for part in parts for ending in part.endings],
        [reward for part in parts for reward in part.rewards],
        parts[0].group_size,
        masked,
    )


def _part(batch: Batch, rows: slice) -> Batch:
    return Batch(
        Sampled(*(table[rows] for table in batch.sampled)),
        batch.texts[rows],
        batch.tasks[rows],
        batch.endings[rows],
        batch.rewards[rows],
        batch.group_size,
    )


Judge = Callable[[world.Ending, int, int], float]
"""From an ending, its task and its luck to a reward: how an experiment replaces what is paid."""
Gate = Callable[[Mapping[str, float]], bool]
"""From the numbers of a step with its gradient to whether its update is made."""
History = list[dict[str, float]]


def train(
    config: MicroConfig,
    seed: int,
    judge: Judge | None = None,
    model: MicroModel | None = None,
    play: world.Play = world.play,
) -> tuple[History, MicroModel]:
    """Train once.

    Args:
        config: How.
        seed: Of the start and of everything that is drawn.
        judge: What a rollout is paid; None: by `config.rewards` and `config.fallback`.
        model: Trained in place; None: the start of this seed.
        play: How an experiment replaces the world.

    Returns:
        One entry per step, and the model.
    """
    trainer = Trainer(config, model or start_of(config, seed), seed, judge, play)
    return [trainer.step() for _ in range(config.updates)], trainer.model


def start_of(config: MicroConfig, seed: int) -> MicroModel:
    """The model that a training of this config begins with."""
    return started(seed, config.start_prose, config.start_steps, config.start_shown)


def mean(history: History, key: str, last: int | None = None) -> float:
    """The mean of a number over all steps, or over the last ones."""
    values = [step[key] for step in (history if last is None else history[-last:])]
    return sum(values) / len(values)


class Trainer:
    """A training that can be stopped at and looked into after each step; see `train`.

    Attributes:
        gate: Asked before the weights move; a guard may stand here.
        played: Rollouts so far, those that dynamic sampling dropped included.
        written: Their tokens.
    """

    def __init__(
        self,
        config: MicroConfig,
        model: MicroModel,
        seed: int,
        judge: Judge | None = None,
        play: world.Play = world.play,
    ) -> None:
        self.config, self.model, self.play = config, model, play
        wanted = loss_config(config.loss, **config.loss_changes)
        self.loss = wanted.model_copy(update={"beta": 0.0}) if config.plain_kl else wanted
        self.reference = copy.deepcopy(model) if wanted.beta else None
        self.optimizer = _optimizer(config, model)
        self.gate: Gate = lambda numbers: True
        self.played = self.written = 0
        self._price = wanted.beta
        self._judge = judge or self._paid
        self._draw = torch.Generator().manual_seed(1_000_003 * (seed + 1))
        self._tasks = TaskStream(len(config.tasks), seed=seed, name="lab")
        self._sampling = DynamicSampling(SamplingConfig(max_draws=config.draws or 1), self._tasks)

    def step(self) -> dict[str, float]:
        """One step: its numbers, those of the rollouts from before its update."""
        batch, extra = self._gather()
        lead = self.advantages(batch)
        numbers = told(batch, lead) | extra
        is_left_out = self.config.skip_fallback and not any(e.valid for e in batch.endings)
        if is_left_out or not bool(lead.any()):
            return numbers | {"updated": 0.0}
        updates = 0
        for _ in range(self.config.passes):
            numbers |= self.gradient(batch.sampled, lead)
            if self.gate(numbers):
                self.optimizer.step()
                updates += 1
        return numbers | {"updated": float(updates > 0)}

    def advantages(self, batch: Batch) -> Tensor:
        """The advantages of a batch: [N]."""
        learning = batch.learning
        if not learning:
            return torch.zeros(len(batch.texts))
        rewards = torch.tensor(batch.rewards[:learning])
        if self.loss.kl_in_reward:
            rewards = self._charged(rewards, batch.sampled)
        groups = torch.tensor(batch.groups[:learning])
        found = advantages(self.config.estimator, rewards, groups, limit=self.config.limit)
        found = found if self.config.negatives else found.clamp(min=0)
        return torch.cat([found, torch.zeros(len(batch.texts) - learning)])

    def update(self, sampled: Sampled, lead: Tensor) -> dict[str, float]:
        """Make one update from N rollouts and their advantages [N]; returns the loss's metrics."""
        numbers = self.gradient(sampled, lead)
        self.optimizer.step()
        return numbers

    def gradient(self, sampled: Sampled, lead: Tensor) -> dict[str, float]:
        """Find the gradient, and move nothing; arguments as of `update`."""
        now, anchor = read(self.model, sampled, self.config.temperature), self._anchor(sampled)
        loss = policy_loss(
            now.logprobs,
            sampled.logprobs,
            lead,
            sampled.mask,
            config=self.loss,
            ref_logprobs=anchor,
            entropy=now.entropy,
        )
        value = loss.value
        if self.config.plain_kl is not None and anchor is not None:
            plain = self.config.plain_kl
            penalty = plain_penalty(plain, now.logprobs, anchor, sampled.mask, self.loss)
            value = value + self._price * penalty
        self.optimizer.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        norm = self._bounded()
        return {name: float(value) for name, value in loss.metrics.items()} | {"grad_norm": norm}

    @torch.no_grad()
    def _anchor(self, sampled: Sampled) -> Tensor | None:
        """The log-probabilities of completions under the reference, where there is one: [N, T]."""
        if self.reference is None:
            return None
        return read(self.reference, sampled, self.config.temperature).logprobs

    def _charged(self, rewards: Tensor, sampled: Sampled) -> Tensor:
        """Rewards [n] less the divergence of the first n rollouts."""
        rows = Sampled(*(table[: len(rewards)] for table in sampled))
        anchor = self._anchor(rows)
        if anchor is None:
            return rewards
        price, limit = self.loss.beta, self.loss.kl_limit
        return penalized_rewards(rewards, rows.logprobs, anchor, rows.mask, beta=price, limit=limit)

    def _bounded(self) -> float:
        """Bring the gradient to the length it may have; the one that it had."""
        found = [each.grad for each in self.model.parameters() if each.grad is not None]
        norm = float(nn.utils.get_total_norm(found))
        is_matched = self.config.optimizer == "matched"
        if norm > 0 and (is_matched or norm > CLIP_NORM):
            torch._foreach_mul_(found, CLIP_NORM / norm)
        return norm

    def _gather(self) -> tuple[Batch, dict[str, float]]:
        """The rollouts of a step, with further draws where dynamic sampling wants them."""
        config = self.config
        batch = self.rollouts(self._tasks.take(config.prompts))
        if config.draws is None:
            return batch, {}
        filling = self._sampling.begin(config.prompts)
        kept, spares = chosen(batch, filling)
        while count := filling.next_draw():
            more, dead = chosen(self.rollouts(self._sampling.refill(count)), filling)
            kept, spares = kept + more, spares + dead
        masked = filling.missing
        return joined([*kept, *spares[:masked]], masked), filling.metrics()

    def rollouts(self, places: Sequence[int]) -> Batch:
        """One group for each of these places in the config's tasks."""
        size = self.config.group_size
        tasks = [self.config.tasks[place] for place in places for _ in range(size)]
        sampled = sample(self.model, prompts_of(tasks), self._draw, self.config.temperature)
        lucks = torch.randint(world.LUCK, (len(tasks),), generator=self._draw).tolist()
        texts = [text_of(row) for row in sampled.tokens.tolist()]
        self.played += len(texts)
        self.written += int(sampled.mask.sum())
        endings = [self.play(*each) for each in zip(texts, tasks, lucks, strict=True)]
        rewards = [self._judge(*each) for each in zip(endings, tasks, lucks, strict=True)]
        return Batch(sampled, texts, tasks, endings, rewards, size)

    def _paid(self, ending: world.Ending, task: int, luck: int) -> float:
        config = self.config
        return world.reward(ending, task, luck, config.rewards, config.fallback)


def _optimizer(config: MicroConfig, model: MicroModel) -> torch.optim.Optimizer:
    if config.optimizer == "matched":
        return torch.optim.SGD(model.parameters(), lr=config.learning_rate)
    return torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, betas=BETAS, weight_decay=0
    )


def plain_penalty(
    estimate: Plain, logprobs: Tensor, ref_logprobs: Tensor, mask: Tensor, config: LossConfig
) -> Tensor:
    """The divergence of a batch from a reference, in nats: a scalar with gradient.

    It is differentiated as it is written, which is the way that it is usually done, and not so that
    the expected gradient is exact, as in `adapters.reference.losses`. For comparison, with
    d = log pi - log pi_ref:

        k1 = d                gradient  grad log pi, which is 0 in expectation: no anchor at all
        k3 = e^-d + d - 1               (1 - e^-d) grad log pi, that of another divergence

    Papers: k3 so in GRPO, Shao et al. 2024, arXiv:2402.03300.

    Args:
        estimate: Which one.
        logprobs: [N, T] float, under the policy, with gradient.
        ref_logprobs: [N, T] float, under the reference.
        mask: [N, T], 1 at the tokens that the policy sampled.
        config: Its aggregation, and the limit of a token's d.
    """
    limit = config.kl_limit
    gap = (logprobs - ref_logprobs).clamp(min=-limit, max=limit)
    each = gap if estimate == "k1" else torch.exp(-gap) + gap - 1
    return aggregate(each, mask.bool(), Totals.of(mask), config)
