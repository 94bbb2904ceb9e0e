"""Demonstrations: what is played, what is learned from it, and how failed calls are mended."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Generator
from typing import Any

import gymnasium as gym
import pytest

from adapters.training.models.demonstrations import (
    HABITS,
    LAST_WORD,
    demonstrate,
    without_conditions,
    wrong_call,
)
from toolgym import ConfigurationError, Task, TaskSet, ToolEnv, registration, tool
from toolgym.calls import ToolCall
from toolgym.messages import Message

EXPLORE = "sqlgym/Explore-v0"
TINY = {"dataset": "tiny"}


class NoExpertEnv(ToolEnv[Task]):
    """An environment without an expert."""

    def __init__(self) -> None:
        super().__init__(TaskSet([Task("a", "What now?")]))

    def begin(self, task: Task) -> str:
        return task.question

    @tool(terminal=True)
    def stop(self) -> str:
        """Stop."""
        return self.submit(True)


class SilentEnv(NoExpertEnv):
    """An environment whose expert stops before it has answered."""

    def expert(self) -> Generator[Any, str, None]:
        yield {"name": "look", "arguments": {}}

    @tool
    def look(self) -> str:
        """Look."""
        return "nothing"


class SearchEnv(NoExpertEnv):
    """An environment with the usual names of tools, and terminal ones without arguments."""

    @tool
    def search(self) -> str:
        """Search."""
        return "nothing"

    @tool(terminal=True, aliases=("lookup", "inspect", "execute"))
    def end(self) -> str:
        """End."""
        return self.submit(True)

    def example_call(self, tool_name: str) -> dict[str, Any]:
        return {"name": "search", "arguments": {}}


for name, cls in (("NoExpert", NoExpertEnv), ("Silent", SilentEnv), ("Search", SearchEnv)):
    if f"demonstration-tests/{name}-v0" not in gym.registry:
        gym.register(id=f"demonstration-tests/{name}-v0", entry_point=cls)


def calls_in(transcript: list[Message]) -> list[tuple[str, dict[str, Any], int, str]]:
    """Name, arguments and weight of each call, and the result."""
    return [
        (
            message["tool_calls"][0]["function"]["name"],
            message["tool_calls"][0]["function"]["arguments"],
            message.get("weight", 1),
            transcript[place + 1]["content"],
        )
        for place, message in enumerate(transcript)
        if message.get("tool_calls")
    ]


@pytest.mark.integration
def test_habits_have_their_shares_and_the_careless_answer_what_their_query_returned() -> None:
    """A share of p is missed by 4.5 standard errors once in 150,000 samples; this one is fixed."""
    n, counts = 120, Counter[str]()

    for transcript in demonstrate(EXPLORE, n, **TINY):
        *_, query, answer = calls_in(transcript)
        if query[0] != "query":
            counts["guess"] += 1
            continue
        counts["careful" if "WHERE" in query[1]["sql"] else "careless"] += 1
        assert str(answer[1]["value"]) == query[3].splitlines()[1]

    for habit, share in HABITS.items():
        assert abs(counts[habit] / n - share) < 4.5 * (share * (1 - share) / n) ** 0.5


def test_one_seed_gives_one_set_of_transcripts() -> None:
    first, same, other = (
        demonstrate(EXPLORE, 20, recoveries=0.5, seed=seed, **TINY) for seed in (3, 3, 4)
    )

    assert first == same
    assert first != other


@pytest.mark.parametrize(
    ("env_id", "env_kwargs"),
    [
        (EXPLORE, TINY),
        ("sqlgym/TextToSQL-v0", {**TINY, "tools": ("query", "answer"), "match": "sound"}),
        ("aflowgym/Compose-v0", {}),
        ("aflowgym/Operate-v0", {}),
        ("trl-tests/Notes-v0", {}),
    ],
)
@pytest.mark.parametrize("demonstrator", ["expert", "sloppy"])
def test_failed_calls_are_not_learned_and_a_call_that_works_follows(
    env_id: str, env_kwargs: dict[str, Any], demonstrator: Any
) -> None:
    failed = 0
    for transcript in demonstrate(
        env_id, 12, demonstrator=demonstrator, recoveries=0.5, **env_kwargs
    ):
        calls = calls_in(transcript)
        for (name, arguments, weight, result), following in itertools.pairwise(calls):
            if result.startswith("error["):
                failed += 1
                assert weight == 0
                assert following[:2] != (name, arguments)
        assert transcript[-1] == {"role": "assistant", "content": LAST_WORD}
    assert failed


def test_a_wrong_name_in_a_query_is_mended_by_the_table_that_has_the_right_one() -> None:
    mended = 0
    for transcript in demonstrate(EXPLORE, 40, demonstrator="expert", recoveries=0.5, **TINY):
        calls = calls_in(transcript)
        for place, (name, _, weight, result) in enumerate(calls):
            if name == "query" and not weight and result.startswith("error[unknown"):
                look, query = calls[place + 1 : place + 3]
                assert (look[0], look[2], query[0], query[2]) == ("describe", 1, "query", 1)
                assert look[1]["table_name"] in query[1]["sql"]
                mended += 1
    assert mended > 5


@pytest.mark.parametrize("step_limit", [2, 3, 5])
def test_mistakes_leave_the_expert_enough_steps_for_its_answer(step_limit: int) -> None:
    for transcript in demonstrate(
        EXPLORE, 8, demonstrator="expert", recoveries=1.0, step_limit=step_limit, **TINY
    ):
        assert calls_in(transcript)[-1][0] == "answer"


def test_a_wrong_call_is_found_whatever_the_tools_are_called_and_ends_no_episode() -> None:
    env = registration.make("demonstration-tests/Search-v0")
    for seed in range(20):
        env.reset()
        wrong, _ = wrong_call(ToolCall("search", {}), env, [], random.Random(seed))
        assert env.step(wrong)[0].startswith("error[unknown_tool")


def test_a_wrong_workflow_is_mended_by_the_call_that_the_error_offers() -> None:
    mended = 0
    transcripts = demonstrate("aflowgym/Compose-v0", 12, demonstrator="expert", recoveries=1.0)
    for transcript in transcripts:
        calls = calls_in(transcript)
        for (_, _, _, result), following in itertools.pairwise(calls):
            if result.startswith("error[invalid_workflow"):
                offered = json.loads(result.partition("This works: ")[2])
                assert {"name": following[0], "arguments": following[1]} == offered
                mended += 1
    assert mended > 5


@pytest.mark.parametrize(
    ("sql", "spoiled"),
    [
        ("SELECT COUNT(*) FROM t WHERE a = 1", "SELECT COUNT(*) FROM t"),
        ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t LIMIT 1"),
        (
            "SELECT a, COUNT(*) FROM t WHERE b > 1 GROUP BY a",
            "SELECT a, COUNT(*) FROM t GROUP BY a LIMIT 1",
        ),
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT (", "SELECT ("),
    ],
)
def test_carelessness_drops_conditions_and_nothing_else(sql: str, spoiled: str) -> None:
    assert without_conditions(sql) == spoiled


def test_an_expert_that_stops_early_leaves_a_transcript_without_an_answer() -> None:
    (transcript,) = demonstrate("demonstration-tests/Silent-v0", 1)

    assert [message["content"] for message in transcript[-2:]] == ["nothing", LAST_WORD]


def test_impossible_demonstrations_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no `expert` method"):
        demonstrate("demonstration-tests/NoExpert-v0", 1)
    with pytest.raises(ConfigurationError, match="at least 1, got 0"):
        demonstrate(EXPLORE, 0, **TINY)
    with pytest.raises(ConfigurationError, match="recoveries must be from 0 to 1"):
        demonstrate(EXPLORE, 1, recoveries=1.5, **TINY)
