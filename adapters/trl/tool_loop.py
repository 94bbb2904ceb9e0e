"""A rollout whose episode is over says nothing more.

TRL knows no end of an episode: after the answer it generates one turn more, and a turn with a call
in it goes on until the budget of calls is spent. Those tokens cost time and are trained on, though
nothing the model writes there can matter. So a rollout whose environment is over gets the
end-of-turn token in place of a generated turn, and that token is masked out of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.training.algorithms.workers import Workers
from adapters.trl.environment import RolloutEnvironment
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


# Processes that meet inside generation come equally often, and with equally much.
#
# vLLM's server is sent the prompts of all processes by one of them; vLLM over several GPUs and
# sharded weights are used by several at once. But a tool loop lasts as long as its own rollouts do:
# TRL 1.16 waits for ever where another process goes on longer, and where processes come with
# unequal numbers of sequences it cuts the answer of the server into equal parts, so that rollouts
# get the words of others. So here the processes tell each other how many sequences each has, all
# fill up to the most, and one whose loop has ended comes along until all have.

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


# How a rollout came to its end: by itself, with its episode, or because it ran out of something.
#
# TRL knows a truncated rollout by its last token. That misses two kinds, in which the last token is
# an end of turn: a call that was made but not run, since the calls or the tokens were used up, and
# a result that did not fit and was taken back. All three are unfinished here: what they would have
# earned nobody knows, so their environments are told, they are counted, and their tokens can be
# left out of the loss.


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


# The tools of different rollouts run at the same time, though TRL asks for them one by one.
#
# TRL goes through the rollouts of a batch and runs the calls of each before it looks at the next,
# so a tool that takes a second takes as many as there are rollouts. Here the first call that TRL
# asks for sends off every rollout that has said something new (`workers`), and all later ones find
# their results there. A rollout plays its own message in order, as it would alone, and no two
# rollouts share anything, so the results do not depend on the threads.

Message = dict[str, Any]


class Crew:
    """The rollouts of one tool loop.

    Args:
        environments: One per rollout.
        completions: The messages of each so far, by reference: TRL extends these lists.
        workers: Play several rollouts at once.
    """

    def __init__(
        self,
        environments: Sequence[RolloutEnvironment],
        completions: Sequence[list[Message]],
        workers: Workers,
    ) -> None:
        self._environments, self._completions = environments, completions
        self._workers = workers
        self._played: list[Message | None] = [None] * len(environments)
        self._results: list[Iterator[str]] = [iter(())] * len(environments)

    def tools(self) -> list[RolloutTools]:
        """What stands where TRL looks for the tools of each rollout."""
        return [RolloutTools(self, rollout) for rollout in range(len(self._environments))]

    def next_result(self, rollout: int) -> str:
        """What the next call in a rollout's latest message returned."""
        if self._completions[rollout][-1] is not self._played[rollout]:
            self._play()
        return next(self._results[rollout], "")

    def _play(self) -> None:
        """Play every message that has calls and was not played yet."""
        latest = [messages[-1] for messages in self._completions]
        waiting = [i for i, message in enumerate(latest) if self._waits(i, message)]
        said = [(self._environments[i], latest[i]) for i in waiting]
        for i, results in zip(waiting, self._workers.each(_say, said), strict=True):
            self._played[i], self._results[i] = latest[i], iter(results)

    def _waits(self, rollout: int, message: Message) -> bool:
        return bool(message.get("tool_calls")) and message is not self._played[rollout]


def _say(said: tuple[RolloutEnvironment, Message]) -> list[str]:
    environment, message = said
    return environment._say(getattr(message, "action", message))


class RolloutTools(dict[str, Callable[..., str]]):
    """The tools of one rollout, to TRL: every name is one, and a message is played as a whole."""

    def __init__(self, crew: Crew, rollout: int) -> None:
        super().__init__()
        self._crew, self._rollout = crew, rollout

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[..., str]:
        result = self._crew.next_result(self._rollout)
        return lambda **arguments: result
