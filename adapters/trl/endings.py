"""How a rollout came to its end: by itself, with its episode, or because it ran out of something.

TRL knows a truncated rollout by its last token. That misses two kinds, in which the last token is
an end of turn: a call that was made but not run, since the calls or the tokens were used up, and a
result that did not fit and was taken back. All three are unfinished here: what they would have
earned nobody knows, so their environments are told, they are counted, and their tokens can be left
out of the loss.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from adapters.trl.factory import RolloutEnvironment


@dataclass(frozen=True)
class End:
    """The end of one rollout.

    Attributes:
        tokens: That the model wrote.
        clipped: Its tokens ran out inside a turn.
        unfinished: Tokens or turns ran out before the episode was over.
    """

    tokens: int
    clipped: bool
    unfinished: bool


def endings(
    environments: Sequence[RolloutEnvironment],
    completions: Sequence[Sequence[dict[str, Any]]],
    completion_ids: Sequence[Sequence[int]],
    tool_mask: Sequence[Sequence[int]],
    end_tokens: Collection[int],
) -> list[End]:
    """How each rollout of a tool loop ended; unfinished ones are marked in their environments.

    Args:
        environments: One per rollout, before their rewards are asked for.
        completions: The messages of each.
        completion_ids: Its tokens, results of tools among them.
        tool_mask: For each of these 1 where the model wrote it.
        end_tokens: Those that end a turn, and padding.
    """
    found = []
    rollouts = zip(environments, completions, completion_ids, tool_mask, strict=True)
    for environment, messages, ids, mask in rollouts:
        clipped = not ids or ids[-1] not in end_tokens
        waits = messages[-1].get("role") == "tool" or bool(messages[-1].get("tool_calls"))
        unfinished = (clipped or waits) and not environment._is_over()
        environment._is_unfinished = unfinished
        found.append(End(sum(mask), clipped, unfinished))
    return found
