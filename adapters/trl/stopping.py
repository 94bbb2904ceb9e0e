"""A rollout whose episode is over says nothing more.

TRL knows no end of an episode: after the answer it generates one turn more, and a turn with a call
in it goes on until the budget of calls is spent. Those tokens cost time and are trained on, though
nothing the model writes there can matter. So a rollout whose environment is over gets the
end-of-turn token in place of a generated turn, and that token is masked out of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adapters.trl.factory import RolloutEnvironment

Turns = tuple[list[list[int]], list[list[float]] | None]
"""What one call of generation returns: token ids per sequence, and log-probabilities or None."""


@dataclass
class ToolLoop:
    """The rollouts of one tool loop, by reference to TRL's own lists, which it extends as it goes.

    Attributes:
        environments: One per rollout.
        prompt_ids: Token ids of each prompt.
        completion_ids: Token ids of each rollout so far.
        end_of_turn: The token that ends a turn.
        stopped: Rollouts that were ended here.
    """

    environments: Sequence[RolloutEnvironment]
    prompt_ids: list[list[int]]
    completion_ids: list[list[int]]
    end_of_turn: int
    stopped: set[int] = field(default_factory=set)

    def generate(
        self, sequences: list[list[int]], generate: Callable[[list[list[int]]], Turns]
    ) -> Turns:
        """Generate a turn for those of the sequences whose episode goes on.

        Args:
            sequences: Token ids of the rollouts that called a tool, results included.
            generate: TRL's generation for some of them.
        """
        over = self._over(sequences)
        if not any(over):
            return generate(sequences)
        going = [sequence for sequence, done in zip(sequences, over, strict=True) if not done]
        ids, log_probs = generate(going) if going else ([], None)
        fresh, scores = iter(ids), iter(log_probs or [])
        turns = [[self.end_of_turn] if done else next(fresh) for done in over]
        if going and log_probs is None:
            return turns, None
        return turns, [[0.0] if done else next(scores) for done in over]

    def mask(self, tool_mask: list[list[int]]) -> None:
        """Take the tokens that were put in here out of the loss."""
        for rollout in self.stopped:
            tool_mask[rollout][-1] = 0

    def _over(self, sequences: list[list[int]]) -> list[bool]:
        """Whether each sequence belongs to a rollout that is over.

        TRL passes the sequences in the order of the rollouts but leaves some out; a rollout is
        known by its tokens, with which its sequence begins. Twins have the same tokens, so they
        have made the same calls to the same task, and stand at the same point.
        """
        over, rollout = [], 0
        for sequence in sequences:
            rollout = self._owner(sequence, rollout)
            done = rollout < len(self.environments) and self.environments[rollout]._is_over()
            if done:
                self.stopped.add(rollout)
            over.append(done)
            rollout += 1
        return over

    def _owner(self, sequence: list[int], start: int) -> int:
        for rollout in range(start, len(self.prompt_ids)):
            begun = self.prompt_ids[rollout] + self.completion_ids[rollout]
            if sequence[: len(begun)] == begun:
                return rollout
        return len(self.prompt_ids)
