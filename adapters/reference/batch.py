"""Batches: rollouts as padded tensors, and the forward passes they are split into.

    tokens     N x T   completions, from their first token on, padded on the right
    loss_mask  N x T   the tokens in the loss: sampled by the policy, in a rollout that counts

A pass is a few rollouts of like length, prompt and completion end to end, padded on the right,
where causal attention never looks: so no mask is needed, and attention takes its fast way. How the
batch is cut changes nothing but rounding, since losses are divided by what the whole batch has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from adapters.reference.rollout import Rollout


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
        mask = _padded([rollout.mask for rollout in rollouts], width, 0).bool()
        return cls(
            prompts=[rollout.prompt for rollout in rollouts],
            tokens=_padded([rollout.completion for rollout in rollouts], width, 0),
            lengths=torch.tensor([len(rollout.completion) for rollout in rollouts]),
            loss_mask=mask & torch.tensor(in_loss)[:, None],
            log_probs=_padded([rollout.log_probs for rollout in rollouts], width, 0.0),
            turn_of_token=_padded([_turn_numbers(rollout) for rollout in rollouts], width, -1),
            rewards=torch.tensor([float(rollout.reward) for rollout in rollouts]),
            groups=torch.tensor([rollout.request.group for rollout in rollouts]),
            turn_rewards=_padded([rollout.turn_rewards for rollout in rollouts], turns, 0.0),
            turn_mask=_padded([[1] * len(r.turns) for r in rollouts], turns, 0).bool(),
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

    def _pass(self, rows: list[int]) -> Pass:
        texts = [self.prompts[r] + self.tokens[r, : self.lengths[r]].tolist() for r in rows]
        width = int(self.lengths[rows].max())
        loss_mask = self.loss_mask[rows, :width]
        predicts = torch.zeros(len(rows), max(map(len, texts)), dtype=torch.bool)
        for place, row in enumerate(rows):
            before = len(self.prompts[row]) - 1  # a token is predicted where the one before stands
            in_loss = loss_mask[place, : self.lengths[row]]
            predicts[place, before : before + len(in_loss)] = in_loss
        return Pass(rows, _padded(texts, predicts.shape[1], 0), predicts, loss_mask)


@dataclass(frozen=True)
class Pass:
    """The rows of a batch that share one forward pass.

    Attributes:
        rows: Their numbers in the batch.
        ids: [n, L] int, prompts and completions.
        predicts: [n, L] bool, the positions that predict a token in the loss.
        loss_mask: [n, t] bool, the same tokens in the completions, in the same order.
    """

    rows: list[int]
    ids: Tensor
    predicts: Tensor
    loss_mask: Tensor


def _turn_numbers(rollout: Rollout) -> list[int]:
    numbers = [-1] * len(rollout.completion)
    for number, (start, end) in enumerate(rollout.turns):
        numbers[start:end] = [number] * (end - start)
    return numbers


def _padded(rows: Sequence[Sequence[float]], width: int, filler: float) -> Tensor:
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])
