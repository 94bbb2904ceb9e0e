"""A small model of workflows for four of the experiments: language, episodes, model, training loop.

The model is a transformer of 100,000 parameters that writes workflows word by word. A training of
60 updates takes one second. Each text is played as an episode of `aflowgym/Compose-v0` with
simulated operators. Advantages, losses, dynamic sampling and guards are those of `adapters`.

    trainer = Trainer(Settings(learning_rate=1e-3), seed=0)
    history = [trainer.step() for _ in range(60)]
    print(trainer.examine())
"""

from __future__ import annotations

import copy
import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence

from adapters.reference.losses import Pass, Totals, policy_loss
from adapters.training.algorithms.advantages import advantages
from adapters.training.algorithms.dynamic_sampling import TaskStream, fill
from adapters.training.algorithms.groups import dead_share, equal_rewards_share
from adapters.training.guards import Guards
from adapters.training.guards.config import Action, GuardConfig
from adapters.training.settings import GrpoSettings
from toolgym import registration
from toolgym.episode import Outcome

torch.set_num_threads(1)  # more threads are slower at this size

# The language. A prompt is two tokens: the kind of a task and its number. A completion is a
# workflow or prose.

KINDS: Final = ("math", "code", "qa")
ITEMS: Final = 8
TASKS: Final = range(len(KINDS) * ITEMS)
"""Positions of the tasks, ordered by kind."""
CODE: Final = TASKS[ITEMS : 2 * ITEMS]
"""Tasks for which one of forty demonstrated workflows is nearly always correct."""
WORKFLOWS: Final[Mapping[str, int]] = {
    "Custom -> Programmer -> Review ? Revise : done": 115,
    "Custom -> Programmer -> Review -> Revise": 69,
    "Programmer": 47,
    "Custom -> Programmer": 21,
    "Custom -> Programmer -> Review": 18,
    "Programmer -> Review ? Revise : done": 13,
    "Programmer -> Review -> Revise": 10,
    "Custom": 8,
    "Programmer -> Review": 6,
    "Custom -> Review ? Revise : done": 5,
    "[ Programmer * 5 ] -> ScEnsemble": 10,
    "CustomCodeGenerate -> Test * 3": 10,
    "AnswerGenerate -> ( Review -> Revise ) * 3 -> Format": 10,
    "[ Custom * 3 ] -> ScEnsemble": 10,
    "AnswerGenerate -> Format": 10,
}
"""The demonstrated workflows with their weights. The first ten, with their counts, are the most
frequent workflows of a training that collapsed with groups of two. The others include the best
workflows."""
PROSE: Final = (
    "### Step 1: Analyze the problem .",
    "### Step 1: Understand the question . First we need to find the answer .",
    "### Step 1: Analyze the problem and find the answer . ### Step 2: Solve the problem .",
)
PROSE_SHARE: Final = 0.05
"""Share of the demonstrations that are prose."""
IMITATION: Final = 150
"""Number of supervised steps, with 64 demonstrations each."""
PAD, END = "<pad>", "<end>"
_PROMPT: Final = (*(f"<{kind}>" for kind in KINDS), *(f"<{item}>" for item in range(ITEMS)))
_SAID: Final = " ".join((*WORKFLOWS, *PROSE)).split()
WORDS: Final = tuple(dict.fromkeys((PAD, END, *_PROMPT, *_SAID)))
NUMBERS: Final[Mapping[str, int]] = {word: number for number, word in enumerate(WORDS)}
PROMPT: Final = 2
LONGEST: Final = 24
"""Maximum tokens of a completion, including its end."""


def prompt_of(task: int) -> list[int]:
    """Return the tokens of a prompt."""
    kind, item = divmod(task, ITEMS)
    return [NUMBERS[f"<{KINDS[kind]}>"], NUMBERS[f"<{item}>"]]


def text_of(tokens: Sequence[int]) -> str:
    """Return the text of a completion up to its end."""
    words = [WORDS[token] for token in tokens]
    return " ".join(words[: words.index(END)] if END in words else words)


# The episodes.


class Ending(NamedTuple):
    """The end of one episode.

    Attributes:
        reward: Reward of the rollout.
        correct: Whether the solution is correct.
        progress: The best state that was reached, from 0 to 1.
    """

    reward: float
    correct: bool
    progress: float

    @property
    def valid(self) -> bool:
        """Whether the text is a workflow that can be run."""
        return self.progress >= 0.3

    @property
    def outcome(self) -> Outcome:
        """The outcome that decides whether a group is dead."""
        return Outcome(self.correct, round(10 * self.progress))


LUCK: Final = 4
"""Number of draws of the operators for each task."""
Play = Callable[[str, int, int], Ending]
"""Function from a text, a task and one of its draws to the end of the episode."""


@functools.cache
def play(text: str, task: int, luck: int) -> Ending:
    """Run a text as a workflow and submit its result. The reward is the score of the episode."""
    env, ids = _environment()
    env.reset(seed=luck, options={"task_id": ids[task]})
    env.step({"name": "run_workflow", "arguments": {"dsl": text}})
    env.step({"name": "answer", "arguments": {}})
    correct = env.outcome.correct
    return Ending(env.finish(), correct, env.episode.ledger.progress)


@functools.cache
def _environment() -> tuple[Any, list[str]]:
    """Return the environment and the ids of the first tasks of each kind."""
    env = registration.make("aflowgym/Compose-v0")
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for task_id in env.tasks.ids:
        by_kind[env.tasks.require(task_id).kind].append(task_id)
    return env, [task_id for ids in by_kind.values() for task_id in ids[:ITEMS]]


# The model. It does not use a library, whose overhead would be five times the arithmetic at this
# size.

WIDTH: Final = 64
HEADS: Final = 4
Cache = tuple[Tensor, Tensor]


class Block(nn.Module):
    """One layer: causal attention and a feed-forward network."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.middle_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query_key_value, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor, cache: Cache | None) -> tuple[Tensor, Cache]:
        """Return hidden states of the same shape [N, T, WIDTH], and all keys and values so far."""
        heads = (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)
        query, key, value = (
            part.reshape(heads).transpose(1, 2)
            for part in self.query_key_value(self.norm(x)).chunk(3, dim=-1)
        )
        if cache is not None:
            key, value = torch.cat([cache[0], key], dim=2), torch.cat([cache[1], value], dim=2)
        found = scaled_dot_product_attention(query, key, value, is_causal=cache is None)
        x = x + self.output(found.transpose(1, 2).reshape(x.shape))
        return x + self.down(gelu(self.up(self.middle_norm(x)))), (key, value)


class MicroModel(nn.Module):
    """A causal language model over `WORDS`."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.words = nn.Embedding(len(WORDS), WIDTH)
            self.places = nn.Embedding(PROMPT + LONGEST, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(2))
            self.norm = nn.LayerNorm(WIDTH)
            for table in (self.words, self.places):
                nn.init.normal_(table.weight, std=0.05)

    def forward(
        self, tokens: Tensor, caches: list[Cache] | None = None
    ) -> tuple[Tensor, list[Cache]]:
        """Return the logits [N, T, words] of the next tokens for tokens [N, T], and the caches."""
        first = 0 if caches is None else caches[0][0].shape[2]
        x = self.words(tokens) + self.places.weight[first : first + tokens.shape[1]]
        kept = []
        for number, block in enumerate(self.blocks):
            x, cache = block(x, None if caches is None else caches[number])
            kept.append(cache)
        return self.norm(x) @ self.words.weight.T * WIDTH**0.5, kept


class Rollouts(NamedTuple):
    """Completions with the tensors that a loss needs.

    Attributes:
        prompts: [N, PROMPT] int.
        tokens: [N, T] int, padded after the end.
        logprobs: [N, T] float, log-probabilities of the tokens at sampling, in nats.
        mask: [N, T] bool, True up to and including the end.
        endings: The ends of the N episodes.
    """

    prompts: Tensor
    tokens: Tensor
    logprobs: Tensor
    mask: Tensor
    endings: list[Ending]

    def groups(self, size: int) -> list[Self]:
        """Split the rollouts into consecutive groups."""
        rows = (slice(start, start + size) for start in range(0, len(self.endings), size))
        return [type(self)(*(column[row] for column in self)) for row in rows]

    @classmethod
    def joined(cls, parts: Sequence[Rollouts]) -> Self:
        """Join several batches."""
        tokens, logprobs, mask = (
            pad_sequence([row for column in columns for row in column], batch_first=True)
            for columns in list(zip(*parts, strict=True))[1:4]
        )
        prompts = torch.cat([part.prompts for part in parts])
        endings = [ending for part in parts for ending in part.endings]
        return cls(prompts, tokens, logprobs, mask, endings)

    def mean(self, what: Callable[[Ending], float]) -> float:
        """Return the mean of a value over the endings."""
        return sum(map(what, self.endings)) / len(self.endings)


@torch.no_grad()
def sample(model: MicroModel, prompts: Tensor, draw: torch.Generator) -> list[Tensor]:
    """Sample one completion per prompt; return tokens, log-probabilities and mask, [N, T] each."""
    logits, caches = model(prompts)
    is_open = torch.ones(len(prompts), dtype=torch.bool)
    steps = []
    while len(steps) < LONGEST and bool(is_open.any()):
        table = logits[:, -1].log_softmax(dim=-1)
        # The argmax of log p + Gumbel noise is a sample from p.
        noise = torch.empty_like(table).exponential_(generator=draw)
        token = torch.where(is_open, (table - noise.log()).argmax(dim=-1), NUMBERS[PAD])
        logprob = torch.where(is_open, table.gather(1, token[:, None])[:, 0], 0.0)
        steps.append((token, logprob, is_open))
        is_open = is_open & (token != NUMBERS[END])
        logits, caches = model(token[:, None], caches)
    return [torch.stack(column, dim=1) for column in zip(*steps, strict=True)]


def read(model: MicroModel, rollouts: Rollouts) -> tuple[Tensor, Tensor]:
    """Return log-probabilities of the tokens and entropies of a model, [N, T] each, in nats."""
    whole = torch.cat([rollouts.prompts, rollouts.tokens], dim=1)[:, :-1]
    table = model(whole)[0][:, PROMPT - 1 :].log_softmax(dim=-1)
    return table.gather(2, rollouts.tokens[:, :, None])[:, :, 0], -(table.exp() * table).sum(-1)


@functools.cache
def imitated(seed: int) -> MicroModel:
    """Return a model that was trained on demonstrations. Copy it before training."""
    model, draw = MicroModel(seed), random.Random(f"toolgym-lab-start-{seed}")
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0)
    for step in range(IMITATION):
        optimizer.param_groups[0]["lr"] = (
            4e-3 * min(1, (step + 1) / 10) * (1 - 0.9 * step / IMITATION)
        )
        rows = [torch.tensor(_demonstration(draw)) for _ in range(64)]
        tokens = pad_sequence(rows, batch_first=True, padding_value=NUMBERS[PAD])
        logits = model(tokens[:, :-1])[0][:, PROMPT - 1 :]
        wanted = tokens[:, PROMPT:].flatten()
        loss = cross_entropy(logits.flatten(0, 1), wanted, ignore_index=NUMBERS[PAD])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def _demonstration(draw: random.Random) -> list[int]:
    """Return a prompt with a completion, which does not depend on the task."""
    workflow = draw.choices(list(WORKFLOWS), weights=list(WORKFLOWS.values()))[0]
    text = draw.choice(PROSE) if draw.random() < PROSE_SHARE else workflow
    prompt = prompt_of(draw.choice(TASKS))
    return [*prompt, *(NUMBERS[word] for word in text.split()), NUMBERS[END]]


# The training loop.

SNAPSHOT_EVERY: Final = 5
"""Number of steps between the snapshots that guards can restore."""


@dataclass(frozen=True)
class Settings:
    """Settings of a training.

    Attributes:
        learning_rate: Learning rate of AdamW.
        group_size: Rollouts per group.
        prompts: Groups per step.
        estimator: Advantage estimator, by its name in `adapters.training.algorithms.advantages`.
        loss: Fields of `GrpoSettings` that differ from GRPO without a KL penalty.
        max_draws: Maximum groups drawn by dynamic sampling, as a multiple of `prompts`; None: off.
        guards: Whether guards with their default settings may skip updates and roll back.
        tasks: Positions of the tasks to train on.
        play: Function that plays and scores a completion.
    """

    learning_rate: float
    group_size: int = 8
    prompts: int = 4
    estimator: str = "group_normalized"
    loss: Mapping[str, Any] = field(default_factory=dict)
    max_draws: float | None = None
    guards: bool = False
    tasks: Sequence[int] = TASKS
    play: Play = play

    def but(self, **changes: Any) -> Settings:
        """Return a copy with some settings changed."""
        return replace(self, **changes)


class Trainer:
    """GRPO training of the model that `imitated` returns for a seed.

    Attributes:
        played: Number of rollouts so far, including those that dynamic sampling dropped.
        stopped: Whether the guards have stopped the training.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.played, self.stopped = settings, 0, False
        self.start = imitated(seed)
        self.model = copy.deepcopy(self.start)
        self._loss = GrpoSettings.model_validate({"loss": "grpo", "beta": 0.0, **settings.loss})
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(), settings.learning_rate, betas=(0.9, 0.98), weight_decay=0
        )
        self._draw, self._exam_draw = (
            torch.Generator().manual_seed(1_000_003 * (seed + first)) for first in (1, 500_001)
        )
        self._tasks = TaskStream(len(settings.tasks), seed=seed, name="lab")
        self._guards = Guards(GuardConfig())
        self._steps, self._snapshots = 0, dict[int, Any]()

    def train(self, updates: int) -> list[dict[str, float]]:
        """Take up to `updates` steps, until the guards stop; return the metrics of each step."""
        history: list[dict[str, float]] = []
        while len(history) < updates and not self.stopped:
            history.append(self.step())
        return history

    def step(self) -> dict[str, float]:
        """Take one step and return its metrics."""
        rollouts, learning = self._gather()
        size = self.settings.group_size
        groups = [row // size for row in range(len(rollouts.endings))]
        outcomes = [ending.outcome for ending in rollouts.endings]
        rewards = [ending.reward for ending in rollouts.endings]
        lead = self._advantages(rollouts, torch.tensor(groups), learning)
        metrics = {
            "reward": rollouts.mean(lambda ending: ending.reward),
            "accuracy": rollouts.mean(lambda ending: ending.correct),
            "validity": rollouts.mean(lambda ending: ending.valid),
            "dead_groups": dead_share(outcomes, groups),
            "zero_variance_groups": equal_rewards_share(rewards, groups),
            "turns": float(len(rewards)),
            "rollouts": float(len(rewards)),
            "advantage_spread": _spread(lead),
            "grad_norm": 0.0,
        }
        teaches = bool(lead.any())
        if teaches:
            metrics |= self._backward(rollouts, lead)
        if self._may_update(metrics) and teaches:
            self._optimizer.step()
        return metrics

    @torch.no_grad()
    def examine(self, each: int = 16) -> dict[str, float]:
        """Evaluate the model on `each` rollouts of every task, with separate random draws.

        Returns:
            The shares `right` and `valid`, and in nats per token `entropy` and `drift` (the KL
            divergence from the start).
        """
        rollouts = self._play(self.settings.tasks, each, self._exam_draw)
        logprobs, entropy = read(self.model, rollouts)
        gaps = logprobs - read(self.start, rollouts)[0]
        return {
            "right": rollouts.mean(lambda ending: ending.correct),
            "valid": rollouts.mean(lambda ending: ending.valid),
            "entropy": float(entropy[rollouts.mask].mean()),
            "drift": float(gaps[rollouts.mask].mean()),
        }

    def _gather(self) -> tuple[Rollouts, int]:
        """Return the rollouts of a step, and how many of the first ones are trained on."""
        size, prompts = self.settings.group_size, self.settings.prompts
        if self.settings.max_draws is None:
            return Rollouts.joined(self._draw_groups(prompts)), size * prompts
        filled = fill(
            prompts,
            self.settings.max_draws,
            self._draw_groups,
            lambda group: [ending.outcome for ending in group.endings],
        )
        return Rollouts.joined([*filled.live, *filled.dead]), size * len(filled.live)

    def _draw_groups(self, count: int) -> list[Rollouts]:
        """Play a group for each of the next `count` tasks."""
        size = self.settings.group_size
        self.played += size * count
        tasks = [self.settings.tasks[place] for place in self._tasks.take(count)]
        return self._play(tasks, size, self._draw).groups(size)

    def _play(self, tasks: Sequence[int], each: int, draw: torch.Generator) -> Rollouts:
        rows = [task for task in tasks for _ in range(each)]
        prompts = torch.tensor([prompt_of(task) for task in rows])
        tokens, logprobs, mask = sample(self.model, prompts, draw)
        lucks = torch.randint(LUCK, (len(rows),), generator=draw).tolist()
        texts = map(text_of, tokens.tolist())
        endings = list(map(self.settings.play, texts, rows, lucks))
        return Rollouts(prompts, tokens, logprobs, mask, endings)

    def _advantages(self, rollouts: Rollouts, groups: Tensor, learning: int) -> Tensor:
        """Return the advantages [N]; those of dead groups that fill the batch are 0."""
        lead = torch.zeros(len(rollouts.endings))
        if not learning:
            return lead
        rewards = torch.tensor([ending.reward for ending in rollouts.endings])
        lead[:learning] = advantages(self.settings.estimator, rewards[:learning], groups[:learning])
        return lead

    def _backward(self, rollouts: Rollouts, lead: Tensor) -> dict[str, float]:
        """Compute the gradient, with its norm clipped to 1."""
        logprobs, entropy = read(self.model, rollouts)
        mask = rollouts.mask
        row = torch.arange(len(mask))[:, None].expand(mask.shape)
        batch = Pass(logprobs[mask], rollouts.logprobs[mask], lead[row[mask]], row[mask])
        loss, figures = policy_loss(
            batch,
            self._loss,
            Totals(float(mask.any(dim=1).sum()), float(mask.sum()), LONGEST),
            reference=self._reference(rollouts)[mask] if self._loss.beta else None,
            entropy=entropy[mask],
        )
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        metrics = {name: float(value) for name, value in figures.items()}
        return metrics | {"loss": float(loss.detach()), "grad_norm": float(norm)}

    @torch.no_grad()
    def _reference(self, rollouts: Rollouts) -> Tensor:
        return read(self.start, rollouts)[0]

    def _may_update(self, metrics: Mapping[str, float]) -> bool:
        """Run the guards, if they are on, and return whether to update."""
        if not self.settings.guards:
            return True
        if self._steps % SNAPSHOT_EVERY == 0:
            state = self.model.state_dict(), self._optimizer.state_dict()
            self._snapshots[self._steps] = copy.deepcopy(state)
        self._steps += 1
        decision = self._guards.observe(self._steps, metrics)
        self.stopped = decision.action is Action.STOP
        if decision.action in (Action.STOP, Action.ROLL_BACK):
            place = self._guards.choose_snapshot(self._snapshots)
            if place is None:
                self.stopped = True
            else:
                weights, moments = copy.deepcopy(self._snapshots[place])
                self.model.load_state_dict(weights)
                self._optimizer.load_state_dict(moments)
        rate = self.settings.learning_rate * decision.learning_rate_scale
        self._optimizer.param_groups[0]["lr"] = rate
        return decision.update


def _spread(lead: Tensor) -> float:
    """Return the standard deviation of nonzero absolute advantages, relative to their mean."""
    sizes = lead[lead != 0].abs()
    return float(sizes.std() / sizes.mean()) if len(sizes) > 1 else 0.0
