"""Demonstrations that are skilled and careless, and what is learnt from them."""

import sqlite3
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from adapters.training.models.demonstrations import (
    HABITS,
    LAST_WORD,
    NoisyDemonstrator,
    demonstrate,
    without_conditions,
)
from toolgym import ConfigurationError, Task, TaskSet, ToolEnv, registration, tool
from toolgym.messages import Message
from toolgym.policies import Situation

EXPLORE = "sqlgym/Explore-v0"
TINY = {"dataset": "tiny"}


class NobodyKnowsEnv(ToolEnv[Task]):
    """An environment whose author wrote no expert."""

    def __init__(self) -> None:
        super().__init__(TaskSet([Task("a", "What now?")]))

    def begin(self, task: Task) -> str:
        return task.question

    @tool(terminal=True)
    def stop(self) -> str:
        """Stop."""
        return self.submit(True)


class SparseEnv(NobodyKnowsEnv):
    """An environment whose expert falls silent before it has answered."""

    def expert(self) -> Generator[Any, str, None]:
        yield {"name": "look", "arguments": {}}

    @tool
    def look(self) -> str:
        """Look."""
        return "nothing"


for name, cls in (("NobodyKnows", NobodyKnowsEnv), ("Sparse", SparseEnv)):
    if f"demonstration-tests/{name}-v0" not in gym.registry:
        gym.register(id=f"demonstration-tests/{name}-v0", entry_point=cls)


def habit_of(transcript: list[Message]) -> str:
    """Which habit a transcript on a question with a condition shows."""
    queries = [
        call["function"]["arguments"]["sql"]
        for message in transcript
        for call in message.get("tool_calls", [])
        if call["function"]["name"] == "query"
    ]
    if not queries:
        return "guess"
    return "careful" if "WHERE" in queries[-1] else "careless"


def test_habits_come_in_their_shares() -> None:
    """A share of p is missed by 4.5 standard errors once in 150,000 samples; this one is fixed."""
    n = 120

    counts = Counter(habit_of(transcript) for transcript in demonstrate(EXPLORE, n, **TINY))

    for habit, share in HABITS.items():
        assert abs(counts[habit] / n - share) < 4.5 * (share * (1 - share) / n) ** 0.5


def test_one_seed_gives_one_set_of_transcripts() -> None:
    first, same, other = (demonstrate(EXPLORE, 20, seed=seed, **TINY) for seed in (3, 3, 4))

    assert first == same
    assert first != other


def test_beyond_the_number_of_tasks_each_is_played_in_another_habit(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").touch()
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as database, database:
        database.execute("CREATE TABLE t (x)")
        database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(12)])
    rows = [
        {"db_id": "a", "question": f"After {n}?", "query": f"SELECT x FROM t WHERE x = {n + 1}"}
        for n in range(11)
    ]
    own = {"dataset": rows, "databases": str(tmp_path)}

    transcripts = demonstrate(EXPLORE, 22, **own)

    rounds = transcripts[:11], transcripts[11:]
    assert [t[1] for t in rounds[0]] == [t[1] for t in rounds[1]]
    assert rounds[0] != rounds[1]


def test_what_stumbled_is_not_learnt_and_what_follows_is() -> None:
    stumbled = 0
    for transcript in demonstrate(EXPLORE, 80, **TINY):
        for place, message in enumerate(transcript):
            if message.get("weight") == 0:
                stumbled += 1
                assert "error[" in transcript[place + 1]["content"] or message["content"]
                assert any(later.get("weight", 1) for later in transcript[place + 2 :])
            elif message["role"] == "tool":
                spoken = transcript[place - 1]
                assert "error[" not in message["content"] or spoken.get("weight") == 0
    assert 3 < stumbled < 30  # 160 calls, 0.08 each, some of which stay readable


def test_the_careless_answer_what_their_own_query_returned() -> None:
    env = registration.make(EXPLORE, **TINY)
    observation, _ = env.reset(seed=0)
    policy = NoisyDemonstrator(habits={"careful": 0.0, "careless": 1.0, "guess": 0.0}, stumbles=0.0)

    memory: dict[str, Any] = {}
    while not env.episode.over:
        (action,) = policy.act([Situation(env, observation, 0, memory)])
        observation, *_ = env.step(action)

    *_, query, answer = env.episode.turns
    assert "WHERE" not in query.calls[0].arguments["sql"]
    assert str(answer.calls[0].arguments["value"]) == query.observation.splitlines()[1]


@pytest.mark.parametrize(
    ("sql", "spoilt"),
    [
        ("SELECT COUNT(*) FROM t WHERE a = 1", "SELECT COUNT(*) FROM t"),
        ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t LIMIT 1"),
        ("SELECT a, COUNT(*) FROM t WHERE b > 1 GROUP BY a", None),
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT a UNION SELECT b FROM t WHERE c", "SELECT a UNION SELECT b FROM t WHERE c"),
        ("SELECT (", "SELECT ("),
    ],
)
def test_carelessness_drops_conditions_and_nothing_else(sql: str, spoilt: str | None) -> None:
    found = without_conditions(sql)

    assert found == (spoilt or "SELECT a, COUNT(*) FROM t GROUP BY a LIMIT 1")


def test_an_expert_that_falls_silent_leaves_a_transcript_that_stops_short() -> None:
    for demonstrator in ("sloppy", "expert"):
        (transcript,) = demonstrate("demonstration-tests/Sparse-v0", 1, demonstrator=demonstrator)

        assert transcript[-2]["content"] == "nothing"
        assert transcript[-1]["content"] == LAST_WORD


def test_an_environment_without_an_expert_is_refused_in_words() -> None:
    with pytest.raises(ConfigurationError, match="has no expert"):
        demonstrate("demonstration-tests/NobodyKnows-v0", 1)


def test_no_demonstrations_are_refused_in_words() -> None:
    with pytest.raises(ConfigurationError, match="at least 1, got 0"):
        demonstrate(EXPLORE, 0, **TINY)
