"""Rollouts as tensors, and how they are cut into passes.

    tokens     N x T   completions, from their first token on, padded on the right
    learnt     N x T   the loss is taken here: sampled by the policy, and the rollout counts

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
    """N rollouts, T tokens of the longest completion, S turns of the one with most.

    Attributes:
        prompts: Token ids before each completion.
        tokens: [N, T] int.
        lengths: [N] int, tokens of each completion.
        learnt: [N, T] bool.
        log_probs: [N, T] float, those that the tokens were drawn with; 0 elsewhere.
        turn_of_token: [N, T] int, the turn that sampled each token; -1 where none did.
        rewards: [N] float, nan where unscored.
        groups: [N] int.
        turn_rewards: [N, S] float.
        taken: [N, S] bool, which turns there were.
    """

    prompts: list[list[int]]
    tokens: Tensor
    lengths: Tensor
    learnt: Tensor
    log_probs: Tensor
    turn_of_token: Tensor
    rewards: Tensor
    groups: Tensor
    turn_rewards: Tensor
    taken: Tensor

    @classmethod
    def of(cls, rollouts: Sequence[Rollout], counts: Sequence[bool]) -> Batch:
        """Put rollouts side by side.

        Args:
            rollouts: At least one.
            counts: Whether the loss is taken over each.
        """
        width = max(1, *(len(rollout.completion) for rollout in rollouts))
        turns = max(1, *(len(rollout.turns) for rollout in rollouts))
        mask = _padded([rollout.mask for rollout in rollouts], width, 0).bool()
        return cls(
            prompts=[rollout.prompt for rollout in rollouts],
            tokens=_padded([rollout.completion for rollout in rollouts], width, 0),
            lengths=torch.tensor([len(rollout.completion) for rollout in rollouts]),
            learnt=mask & torch.tensor(counts)[:, None],
            log_probs=_padded([rollout.log_probs for rollout in rollouts], width, 0.0),
            turn_of_token=_padded([_turn_numbers(rollout) for rollout in rollouts], width, -1),
            rewards=torch.tensor([float(rollout.reward) for rollout in rollouts]),
            groups=torch.tensor([rollout.request.group for rollout in rollouts]),
            turn_rewards=_padded([rollout.turn_rewards for rollout in rollouts], turns, 0.0),
            taken=_padded([[1] * len(r.turns) for r in rollouts], turns, 0).bool(),
        )

    def __len__(self) -> int:
        return len(self.prompts)

    def passes(self, tokens: int) -> Iterator[Pass]:
        """Cut the rollouts that have anything to learn into passes.

        Args:
            tokens: Of one pass at most, padding included, unless a single rollout has more.
        """
        lengths = [len(p) + int(n) for p, n in zip(self.prompts, self.lengths, strict=True)]
        rows = [row for row in range(len(self)) if self.learnt[row].any()]
        rows.sort(key=lambda row: lengths[row])
        chosen: list[int] = []
        for row in rows:
            if chosen and lengths[row] * (len(chosen) + 1) > tokens:
                yield self._pass(chosen)
                chosen = []
            chosen.append(row)
        if chosen:
            yield self._pass(chosen)

    def _pass(self, rows: list[int]) -> Pass:
        texts = [self.prompts[r] + self.tokens[r, : self.lengths[r]].tolist() for r in rows]
        width = int(self.lengths[rows].max())
        learnt = self.learnt[rows, :width]
        predicts = torch.zeros(len(rows), max(map(len, texts)), dtype=torch.bool)
        for place, row in enumerate(rows):
            before = len(self.prompts[row]) - 1  # a token is predicted where the one before stands
            found = learnt[place, : self.lengths[row]]
            predicts[place, before : before + len(found)] = found
        return Pass(rows, _padded(texts, predicts.shape[1], 0), predicts, learnt)


@dataclass(frozen=True)
class Pass:
    """Some rows of a batch, for one forward pass.

    Attributes:
        rows: Which.
        ids: [n, L] int, prompts and completions.
        predicts: [n, L] bool, where a learnt token is predicted.
        learnt: [n, t] bool, the same tokens in the completions, in the same order.
    """

    rows: list[int]
    ids: Tensor
    predicts: Tensor
    learnt: Tensor


def _turn_numbers(rollout: Rollout) -> list[int]:
    numbers = [-1] * len(rollout.completion)
    for number, (start, end) in enumerate(rollout.turns):
        numbers[start:end] = [number] * (end - start)
    return numbers


def _padded(rows: Sequence[Sequence[float]], width: int, filler: float) -> Tensor:
    return torch.tensor([[*row, *[filler] * (width - len(row))] for row in rows])
