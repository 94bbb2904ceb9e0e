"""The contract of an adapter: a framework in between changes nothing of an episode.

An adapter's test plays every scripted episode (`scripted_episodes`) through its framework, as near
to a real run as it can. The same messages go to the environment itself, and the two are compared:
what the agent was asked, each observation, each reward, each repair, each error, when it was over,
the score.

What a protocol cannot carry is exempt, by the name of an episode or of a field, each with its
reason; what is exempt and comes through all the same fails too, so the list stays true.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.episode import Turn
from toolgym.errors import EnvironmentFault
from toolgym.testing import ContractBroken

SAME: Final = "same"
_TOLERANCE: Final = 1e-9


class NotCarried(Exception):
    """The framework's protocol has no form for a message; the text says what it lacks."""


@dataclass(frozen=True)
class PlayedTurn:
    """What came back for one message; None for what the framework does not report.

    Attributes:
        observation: The text for the agent; the results of several calls with a blank line between.
        reward: What the turn changed of the score.
        repairs: The codes of the repairs, in order.
        errors: The codes of the errors, in order.
        over: The episode is over.
    """

    observation: str | None = None
    reward: float | None = None
    repairs: tuple[str, ...] | None = None
    errors: tuple[str, ...] | None = None
    over: bool | None = None

    @classmethod
    def of(cls, turn: Turn, over: bool) -> PlayedTurn:
        """A turn as an environment recorded it."""
        repairs = tuple(code for each in turn.calls for code in each.repairs)
        errors = tuple(error.code for error in turn.errors if error is not None)
        return cls(turn.observation, turn.reward, repairs, errors, over)

    @classmethod
    def joined(cls, parts: Sequence[PlayedTurn]) -> PlayedTurn:
        """The calls of one message as one turn, where a framework makes each a turn of its own."""
        rewards = [each.reward for each in parts if each.reward is not None]
        return cls(
            "\n\n".join(each.observation or "" for each in parts),
            math.fsum(rewards) if len(rewards) == len(parts) else None,
            tuple(code for each in parts for code in each.repairs or ()),
            tuple(code for each in parts for code in each.errors or ()),
            parts[-1].over,
        )


@dataclass(frozen=True)
class Played:
    """An episode that was played and closed; None for what the framework does not report.

    Attributes:
        prompt: The question and the budget, as the agent was told them.
        turns: One for each message, up to a fault.
        score: Of the episode; nan where it is unscored.
        correct: The right answer was given.
    """

    prompt: str | None
    turns: tuple[PlayedTurn, ...]
    score: float
    correct: bool | None = None


Play = Callable[[ScriptedEpisode], Played]
FIELDS: Final = ("prompt", "observation", "reward", "repairs", "errors", "over", "correct")
"""What may be exempt by name besides episodes; a score every framework has."""


def play_plainly(script: ScriptedEpisode) -> Played:
    """The episode as the environment itself plays it."""
    env = registration.make(script.env_id, **script.arguments)
    env.reset(options={"task_id": script.task_id})
    turns: list[PlayedTurn] = []
    for message in script.messages:
        try:
            env.step(message)
        except EnvironmentFault:
            break
        turns.append(PlayedTurn.of(env.episode.turns[-1], env.episode.over))
    return played_in(env, turns)


def played_in(env: ToolEnv[Any], turns: Iterable[PlayedTurn]) -> Played:
    """What was played in an environment that the test can reach; closes the episode."""
    score = env.finish()
    return Played(env.user_prompt(), tuple(turns), score, env.episode.ledger.correct)


def json_calls(message: str) -> list[dict[str, Any]]:
    """The calls in a message, as a host hands them on that reads calls by itself, as plain JSON.

    Raises:
        NotCarried: There is none, or one is no object with a name and an object of arguments.
    """
    blocks = re.findall(r"<tool_call>(.*?)</tool_call>", message, re.DOTALL)
    if not blocks:
        raise NotCarried("a message without a whole call")
    calls = []
    for block in blocks:
        try:
            read = json.loads(block)
        except ValueError:
            raise NotCarried("a call that is no JSON") from None
        if not isinstance(read.get("arguments"), dict):
            raise NotCarried("arguments that are no object")
        calls.append({"name": read["name"], "arguments": read["arguments"]})
    return calls


def check_episode(play: Play, script: ScriptedEpisode, exempt: Mapping[str, str]) -> str:
    """Hold one scripted episode against the environment.

    Args:
        play: Plays it through the framework.
        exempt: The reason, by name of an episode or of a field.

    Returns:
        `SAME`, or why it cannot be carried.

    Raises:
        ContractBroken: It differs; or it does not, and is exempt.
    """
    unknown = exempt.keys() - {*FIELDS, *(each.name for each in SCRIPTS), script.name}
    if unknown:
        raise ContractBroken(f"there is no episode or field {min(unknown)!r} to be exempt")
    reason = exempt.get(script.name)
    try:
        difference = _difference(play_plainly(script), play(script), exempt)
    except NotCarried as lack:
        difference = f"{lack} was not carried"
    if reason is None and difference:
        raise ContractBroken(
            f"{script.name} ({script.shows}): {difference}. If the framework's protocol cannot"
            f" carry it, say so: exempt={{{script.name!r}: 'the reason'}}"
        )
    if reason is not None and not difference:
        raise ContractBroken(f"{script.name} is exempt, and the same: take it off the list")
    return reason or SAME


def _difference(plain: Played, played: Played, exempt: Mapping[str, str]) -> str:
    """The first difference in words; empty where there is none."""
    pairs: list[tuple[str, str, Any, Any]] = [("prompt", "", plain.prompt, played.prompt)]
    if len(plain.turns) != len(played.turns):
        return f"{len(plain.turns)} turns were to be played, and {len(played.turns)} were"
    for number, (one, other) in enumerate(zip(plain.turns, played.turns, strict=True), 1):
        where = f" of turn {number}"
        pairs += [(name, where, value, vars(other)[name]) for name, value in vars(one).items()]
    pairs += [("correct", "", plain.correct, played.correct)]
    pairs += [("score", "", plain.score, played.score)]
    for name, where, value, found in pairs:
        if found is None and name in exempt:
            continue
        if name in exempt:
            return f"the {name} is exempt, and reported: take it off the list"
        if not _equal(value, found):
            return f"the {name}{where} is {_quoted(found)}, and should be {_quoted(value)}"
    return ""


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or abs(one - other) <= _TOLERANCE
    return bool(one == other)


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 400 else f"{text[:300]}... ({len(text):,} letters)"
