"""Processes that meet inside generation come equally often, and with equally much.

vLLM's server is sent the prompts of all processes by one of them; vLLM over several GPUs and
sharded weights are used by several at once. But a tool loop lasts as long as its own rollouts do:
TRL 1.16 waits for ever where another process goes on longer, and where processes come with unequal
numbers of sequences it cuts the answer of the server into equal parts, so that rollouts get the
words of others. So here the processes tell each other how many sequences each has, all fill up to
the most, and one whose loop has ended comes along until all have.
"""

from __future__ import annotations

from collections.abc import Callable

from adapters.trl.stopping import Generate, Sequences, Turns

_GONE = -1


class Meeting:
    """The generation of one tool loop, with the same loops of the other processes.

    Args:
        exchange: Hands over a number for those of all processes.
        filler: Token ids of a sequence, for places that this process has no rollout for.
    """

    def __init__(self, exchange: Callable[[int], list[int]], filler: list[int]) -> None:
        self._exchange, self._filler = exchange, filler

    def joined(self, generate: Generate) -> Generate:
        """Generation for sequences of this process, none included, while others have theirs."""

        def meet(sequences: Sequences) -> Turns:
            most = max(self._exchange(len(sequences)))
            return self._filled(sequences, most, generate)

        return meet

    def see_off(self, generate: Generate) -> None:
        """Come along, with nothing of one's own, until the loops of all have ended."""
        while (most := max(self._exchange(_GONE))) != _GONE:
            self._filled([], most, generate)

    def _filled(self, sequences: Sequences, most: int, generate: Generate) -> Turns:
        if not most:
            return [], None
        ids, log_probs = generate([*sequences, *[self._filler] * (most - len(sequences))])
        own = len(sequences)
        return ids[:own], log_probs[:own] if log_probs is not None else None


def shared_prompts(prompts: Sequences, size: int) -> bool:
    """Whether the prompts of each group are the same, so that one can be sent for all of them."""
    return all(prompt == prompts[place - place % size] for place, prompt in enumerate(prompts))
