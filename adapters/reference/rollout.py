"""Rollouts: the tokens of a finished episode with mask, log-probabilities and rewards; batches.

    prompt            | completion
    system, question  | turn, results, turn, results, ..., turn
                      | 1111  0000000  1111  0000000  ...  1111      mask: 1 = sampled by the policy

The tokens are those that the model read and wrote, never decoded and encoded again, and every
sampled one has the log-probability that it was sampled with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from adapters.training.models.shared_prefix import Packing, divided, paths
from toolgym.episode import Outcome
from toolgym.rollout import EpisodeRecord


class Ending(StrEnum):
    """Why a rollout ended."""

    ANSWERED = "answered"
    """The terminal call was made."""
    OUT_OF_CALLS = "out_of_calls"
    """The environment's budget of calls was spent."""
    CUT_OFF = "cut_off"
    """The tokens ran out inside a turn."""
    NO_ROOM = "no_room"
    """The tokens ran out between turns: what came back did not fit any more."""
    FAULT = "fault"
    """The environment failed; the rollout is unscored."""


@dataclass(frozen=True)
class Request:
    """The request for one rollout.

    Attributes:
        task_id: A task of the environment.
        group: Rollouts with the same number form one group.
        stream: The name of the random numbers; the same name on the same task samples the same.
    """

    task_id: str
    group: int
    stream: str

    @property
    def name(self) -> str:
        """The name that seeds its random numbers, the policy's and the environment's."""
        return f"{self.stream}-{self.task_id}"


@dataclass(frozen=True)
class Rollout:
    """The rollout of a request.

    Attributes:
        request: The request.
        prompt: Tokens before the first turn; empty where a fault let no episode begin.
        completion: Tokens after it: turns, and what came back between them.
        mask: For each token of the completion, 1 where the policy sampled it, else 0.
        log_probs: For each, the log-probability it was sampled with; 0.0 where it was not sampled.
        turns: First token of each turn in the completion, and the one after its last.
        turn_rewards: What each turn changed of the score; what closing the episode changed belongs
            to the last. They sum to the reward.
        reward: The episode's score; nan where a fault left it unscored.
        ending: Why it ended.
        episode: The transcript; None where no episode began.
        fault: What failed in the environment; empty where nothing did.
    """

    request: Request
    prompt: list[int]
    completion: list[int]
    mask: list[int]
    log_probs: list[float]
    turns: list[tuple[int, int]]
    turn_rewards: list[float]
    reward: float
    ending: Ending
    episode: EpisodeRecord | None
    fault: str = ""

    @property
    def scored(self) -> bool:
        """Whether it has a reward; a fault leaves none."""
        return math.isfinite(self.reward)

    @property
    def truncated(self) -> bool:
        """Whether it ended without an answer: out of tokens or out of calls."""
        return self.is_unfinished or self.ending is Ending.OUT_OF_CALLS

    @property
    def is_unfinished(self) -> bool:
        """Whether the tokens ran out before the episode was over."""
        return self.ending in (Ending.CUT_OFF, Ending.NO_ROOM)

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of its episode; None where it is unscored."""
        return self.episode.outcome if self.episode is not None and self.scored else None

    @property
    def sampled(self) -> int:
        """The number of tokens that the policy sampled."""
        return sum(self.mask)


# Batches: rollouts as padded tensors, and the forward passes they are split into.
#
#     tokens     N x T   completions, from their first token on, padded on the right
#     loss_mask  N x T   the tokens in the loss: sampled by the policy, in a rollout that counts
#
# A pass is a few rollouts of like length, prompt and completion end to end, padded on the right,
# where causal attention never looks: so no mask is needed, and attention takes its fast way. Or it
# is one row in which rollouts follow each other, and what their prompts have in common stands once
# (`adapters.training.models.shared_prefix`). How the batch is cut changes nothing but rounding,
# since losses are divided by what the whole batch has.


@dataclass(frozen=True)
class Batch:
    """A batch of N rollouts, with T tokens of the longest completion and at most S turns.

    Attributes:
        prompts: Token ids before each completion.
        tokens: [N, T] int.
        lengths: [N] int, tokens of each completion.
        loss_mask: [N, T] bool, the tokens in the loss.
        log_probs: [N, T] float, of the sampled tokens when they were sampled; 0 elsewhere.
        turn_of_token: [N, T] int, the turn that sampled each token; -1 where none did.
        rewards: [N] float, nan where unscored.
        groups: [N] int.
        turn_rewards: [N, S] float.
        turn_mask: [N, S] bool, which turns there were.
    """

    prompts: list[list[int]]
    tokens: Tensor
    lengths: Tensor
    loss_mask: Tensor
    log_probs: Tensor
    turn_of_token: Tensor
    rewards: Tensor
    groups: Tensor
    turn_rewards: Tensor
    turn_mask: Tensor

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], in_loss: Sequence[bool]) -> Batch:
        """The batch of some rollouts.

        Args:
            rollouts: At least one.
            in_loss: Whether each takes part in the loss.
        """
        width = max(1, *(len(rollout.completion) for rollout in rollouts))
        turns = max(1, *(len(rollout.turns) for rollout in rollouts))
        mask = _pad([rollout.mask for rollout in rollouts], width, 0).bool()
        return cls(
            prompts=[rollout.prompt for rollout in rollouts],
            tokens=_pad([rollout.completion for rollout in rollouts], width, 0),
            lengths=torch.tensor([len(rollout.completion) for rollout in rollouts]),
            loss_mask=mask & torch.tensor(in_loss)[:, None],
            log_probs=_pad([rollout.log_probs for rollout in rollouts], width, 0.0),
            turn_of_token=_pad([_turn_numbers(rollout) for rollout in rollouts], width, -1),
            rewards=torch.tensor([float(rollout.reward) for rollout in rollouts]),
            groups=torch.tensor([rollout.request.group for rollout in rollouts]),
            turn_rewards=_pad([rollout.turn_rewards for rollout in rollouts], turns, 0.0),
            turn_mask=_pad([[1] * len(r.turns) for r in rollouts], turns, 0).bool(),
        )

    def __len__(self) -> int:
        return len(self.prompts)

    def passes(self, tokens: int) -> Iterator[Pass]:
        """The forward passes over the rollouts that have tokens in the loss.

        Args:
            tokens: Most tokens of one pass, padding included, unless a single rollout has more.
        """
        lengths = [len(p) + int(n) for p, n in zip(self.prompts, self.lengths, strict=True)]
        rows = [row for row in range(len(self)) if self.loss_mask[row].any()]
        rows.sort(key=lambda row: lengths[row])
        pending: list[int] = []
        for row in rows:
            if pending and lengths[row] * (len(pending) + 1) > tokens:
                yield self._pass(pending)
                pending = []
            pending.append(row)
        if pending:
            yield self._pass(pending)

    def shared_passes(self, tokens: int, logits: int, least: int) -> list[Pass]:
        """The same, with what prompts have in common read once; none where nothing is saved by it.

        Args:
            tokens: Most tokens of one pass, unless a single rollout has more.
            logits: Most tokens of one pass that are in the loss, with the same exception.
            least: Tokens from which on a common beginning of prompts is read once.
        """
        rows = [row for row in range(len(self)) if self.loss_mask[row].any()]
        if all(len(self.prompts[row]) <= least for row in rows):
            return []
        # A rollout ends with the last token that predicts one in the loss. The last token of a
        # prompt predicts too, and so belongs to the rollout.
        lengths = [int(self.loss_mask[row].nonzero().max()) for row in rows]
        texts = [
            self.prompts[row] + self.tokens[row, :length].tolist()
            for row, length in zip(rows, lengths, strict=True)
        ]
        found = paths(texts, [len(self.prompts[row]) - 1 for row in rows], least)
        if all(len(path) == 1 for path in found.values()):
            return []
        learnt = self.loss_mask[rows].sum(dim=1).tolist()
        return [
            self._packed(Packing(texts, found, chosen), [rows[place] for place in chosen])
            for chosen in divided(found, learnt, tokens, logits)
        ]

    def _packed(self, packing: Packing, rows: list[int]) -> Pass:
        loss_mask = self.loss_mask[rows, : int(self.lengths[rows].max())]
        predicts = torch.zeros(packing.ids.shape, dtype=torch.bool)
        for row, shift in zip(rows, packing.shifts, strict=True):
            places = self.loss_mask[row].nonzero().squeeze(1)
            predicts[0, places + len(self.prompts[row]) - 1 + shift] = True
        return Pass(rows, packing.ids, predicts, loss_mask, self._targets(rows), packing)

    def _targets(self, rows: list[int]) -> Tensor:
        return self.tokens[rows][self.loss_mask[rows]]

    def _pass(self, rows: list[int]) -> Pass:
        texts = [self.prompts[r] + self.tokens[r, : self.lengths[r]].tolist() for r in rows]
        width = int(self.lengths[rows].max())
        loss_mask = self.loss_mask[rows, :width]
        predicts = torch.zeros(len(rows), max(map(len, texts)), dtype=torch.bool)
        for place, row in enumerate(rows):
            before = len(self.prompts[row]) - 1  # a token is predicted where the one before stands
            in_loss = loss_mask[place, : self.lengths[row]]
            predicts[place, before : before + len(in_loss)] = in_loss
        ids = _pad(texts, predicts.shape[1], 0)
        return Pass(rows, ids, predicts, loss_mask, self._targets(rows))


@dataclass(frozen=True)
class Pass:
    """The rows of a batch that share one forward pass.

    Attributes:
        rows: Their numbers in the batch.
        ids: [n, L] int, prompts and completions; [1, L] where they share one row.
        predicts: The same shape, bool: the positions that predict a token in the loss.
        loss_mask: [n, t] bool, the same tokens in the completions, in the same order.
        targets: [P] int, these tokens.
        packing: Of the row that they share.
    """

    rows: list[int]
    ids: Tensor
    predicts: Tensor
    loss_mask: Tensor
    targets: Tensor
    packing: Packing | None = None


def _turn_numbers(rollout: Rollout) -> list[int]:
    numbers = [-1] * len(rollout.completion)
    for number, (start, end) in enumerate(rollout.turns):
        numbers[start:end] = [number] * (end - start)
    return numbers


def _pad(rows: Sequence[Sequence[float]], width: int, filler: float) -> Tensor:
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])
