"""A rollout whose episode is over says nothing more.

TRL knows no end of an episode: after the answer it generates one turn more, and a turn with a call
in it goes on until the budget of calls is spent. Those tokens cost time and are trained on, though
nothing the model writes there can matter. So a rollout whose environment is over gets the
end-of-turn token in place of a generated turn, and that token is masked out of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.trl.factory import RolloutEnvironment
from toolgym.errors import ConfigurationError

Sequences = list[list[int]]
Turns = tuple[list[list[int]], list[list[float]] | None]
"""What one call of generation returns: token ids per sequence, and log-probabilities or None."""
Generate = Callable[[Sequences], Turns]


@dataclass
class ToolLoop:
    """The rollouts of one tool loop, by reference to TRL's own lists, which it extends as it goes.

    Attributes:
        environments: One per rollout.
        completions: The messages of each.
        end_of_turn: The token that ends a turn.
        stopped: Rollouts that were ended here.
    """

    environments: Sequence[RolloutEnvironment]
    completions: Sequence[Sequence[dict[str, Any]]]
    end_of_turn: int
    stopped: set[int] = field(default_factory=set)
    _told: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._told = [len(messages) for messages in self.completions]

    def generate(self, sequences: Sequences, generate: Generate) -> Turns:
        """Generate a turn for those of the sequences whose episode goes on.

        Args:
            sequences: Token ids of the rollouts that called a tool, results included.
            generate: Takes some of them, or none.

        Raises:
            ConfigurationError: This version of TRL passes other rollouts than those that called.
        """
        speakers = self._speakers(len(sequences))
        over = [self.environments[rollout]._is_over() for rollout in speakers]
        going = [sequence for sequence, done in zip(sequences, over, strict=True) if not done]
        ids, log_probs = generate(going)
        self.stopped |= {rollout for rollout, done in zip(speakers, over, strict=True) if done}
        fresh, scores = iter(ids), iter(log_probs or [])
        turns = [[self.end_of_turn] if done else next(fresh) for done in over]
        if going and log_probs is None:
            return turns, None
        return turns, [[0.0] if done else next(scores) for done in over]

    def mask(self, tool_mask: list[list[int]]) -> None:
        """Take the tokens that were put in here out of the loss."""
        for rollout in self.stopped:
            tool_mask[rollout][-1] = 0

    def _speakers(self, count: int) -> list[int]:
        """The rollouts that the sequences belong to, in their order.

        They are those that have just been told something. TRL takes a result back that did not fit,
        and a turn of which nothing fitted leaves no message, so both are known by the number of
        messages. Their tokens would not tell them apart: twins differ once a tool answers them
        differently.
        """
        lengths = [len(messages) for messages in self.completions]
        before, self._told = self._told, lengths
        grown = [i for i, (old, new) in enumerate(zip(before, lengths, strict=True)) if new > old]
        speakers = [i for i in grown if self.completions[i][-1].get("role") == "tool"]
        if len(speakers) != count:
            raise ConfigurationError(
                f"TRL generates for {count} rollouts where {len(speakers)} were told a result: its"
                " tool loop is not the one this was written for. Install the version of trl that"
                " constraints.txt names."
            )
        return speakers


def ended_only(generate: Generate) -> Generate:
    """Generation of one process by itself, which may be left out where nobody goes on."""
    return lambda sequences: generate(sequences) if sequences else ([], None)
