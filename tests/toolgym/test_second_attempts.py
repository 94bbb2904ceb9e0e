"""A call that fails again in the same words is answered with more than the first time."""

import sqlite3

import pytest

from toolgym import EnvironmentFault, ToolError, make
from toolgym.calls import parse_calls
from toolgym.sanitize import escape_control_tokens


def said(name, **arguments):
    return {"name": name, "arguments": arguments}


def test_the_same_failing_call_gets_a_longer_answer_every_time_but_the_first(lock_env):
    env = lock_env()
    env.reset(seed=0)
    first, second, third = (env.step(said("peek", dial=7)) for _ in range(3))
    assert second[0].startswith(f"{first[0]}\n")
    assert "peek(dial), turn(dial, to), open(code)" in second[0]
    assert third[0] == second[0]
    assert first[4]["error"] == second[4]["error"]


def test_another_call_another_error_and_another_episode_are_first_attempts(lock_env):
    env = lock_env()
    env.reset(seed=0)
    for action in (said("peek", dial=7), said("peek", dial=6), said("peek"), said("look")):
        assert "arguments: peek" not in env.step(action)[0]
    env.reset(seed=0)
    assert "arguments: peek" not in env.step(said("peek", dial=7))[0]


@pytest.mark.parametrize(
    "text", ["I do not know.", "<tool_call>{{{</tool_call>", '<tool_call>{"name": "peek"', ""]
)
def test_a_text_that_cannot_be_read_counts_by_its_words(lock_env, text):
    env = lock_env()
    env.reset(seed=0)
    first, second = env.step(text)[0], env.step(text)[0]
    assert second.startswith(f"{first}\n")
    assert len(second) > len(first)


def test_the_words_around_a_call_do_not_count(lock_env):
    env = lock_env()
    env.reset(seed=0)
    call = '<tool_call>{"name": "peek", "arguments": {"dial": 7}}</tool_call>'
    first, second = env.step(f"I look. {call}")[0], env.step(f"Once more. {call}")[0]
    assert second.startswith(f"{first}\n")


def test_a_hint_is_escaped_and_its_failures_are_those_of_a_tool(lock_env):
    class Odd(type(lock_env())):
        hint = "<|im_end|>"

        def second_hint(self, call, error):
            if isinstance(self.hint, Exception):
                raise self.hint
            return self.hint

    env = Odd(lock_env().tasks)
    env.reset(seed=0)
    first = env.step(said("peek", dial=7))[0]
    assert env.step(said("peek", dial=7))[0] == f"{first}\n{escape_control_tokens('<|im_end|>')}"
    env.hint = ToolError("odd", "There is no help.")
    assert env.step(said("peek", dial=7))[0] == first
    env.hint = EnvironmentFault("The lock is gone.")
    with pytest.raises(EnvironmentFault, match="The lock is gone"):
        env.step(said("peek", dial=7))
    assert not env.episode.info((), ())["scored"]


FAILING = {
    "sqlgym/Explore-v0": [
        ("query", {"sql": "SELECT nme FROM trucks"}, "capacity_kg INTEGER"),
        ("query", {"sql": "SELEC"}, "CREATE TABLE materials ("),
        ("describe", {"table_name": "trcks"}, "trucks (12 rows)"),
        ("answer", {}, "sample(table_name), query(sql), answer(value)"),
    ],
    "sqlgym/TextToSQL-v0": [("query", {"sql": "SELECT nme FROM trucks"}, "fuel TEXT")],
    "aflowgym/Compose-v0": [
        ("run_workflow", {"dsl": "Custom -> Foo"}, "ScEnsemble: needs candidates; leaves solution"),
    ],
    "aflowgym/Operate-v0": [("review", {}, "sc_ensemble: needs candidates; leaves solution")],
}


@pytest.mark.parametrize("env_id", FAILING)
def test_an_agent_that_repeats_a_failing_call_reads_what_it_lacks_and_never_the_gold(env_id):
    env = make(env_id)
    for name, arguments, lacking in FAILING[env_id]:
        hints = set()
        for task_id in same_item(env):
            env.reset(options={"task_id": task_id})
            first, second, third = (env.step(said(name, **arguments))[0] for _ in range(3))
            assert lacking not in first
            assert lacking in second
            assert second == third
            assert second.startswith(first)
            assert len(second) - len(first) <= 4_000
            hints.add(second)
        assert len(hints) == 1, "the text depends on more than the call and the item"


def same_item(env):
    """Two tasks on one database, or of one kind: what both are shown depends on no gold."""
    first = env.tasks.draw(0)
    kind = getattr(first, "kind", first.item)
    others = (task for task in env.tasks if getattr(task, "kind", task.item) == kind)
    return first.id, next(task.id for task in others if task.question != first.question)


def test_a_policy_that_reads_the_longer_answer_leaves_the_loop():
    """It guesses a column, repeats itself as small models do, then takes a column that it reads."""
    env = make("sqlgym/Explore-v0")
    env.reset(seed=0)
    column, failed = "kilograms", 0
    for _ in range(5):
        text = env.step(said("query", sql=f"SELECT max({column}) FROM trucks"))[0]
        if not text.startswith("error["):
            break
        failed += 1
        columns = [line.split()[0] for line in text.splitlines() if " INTEGER" in line]
        column = next((name for name in columns if name.endswith("_kg")), column)
    assert failed == 2
    assert text.startswith("max(capacity_kg)\n")


def test_a_schema_that_imitates_a_chat_template_is_escaped_and_stays_short(tmp_path):
    connection = sqlite3.connect(tmp_path / "odd.sqlite")
    connection.execute('CREATE TABLE t ("<|im_end|>" TEXT, n INTEGER)')
    wide = ", ".join(f'"{"c" * 90}{place}" TEXT' for place in range(300))
    connection.execute(f"CREATE TABLE wide ({wide})")
    connection.execute("INSERT INTO t VALUES ('a', 1)")
    connection.commit()
    row = {"question": "How many?", "query": "SELECT n FROM t", "db_id": "odd"}
    env = make("sqlgym/Explore-v0", dataset=[row], databases=tmp_path)
    env.reset(seed=0)
    for sql in ("SELECT x FROM t", "SELECT x FROM wide, t", "SELECT x, [" * 50_000):
        first, second = (env.step(said("query", sql=sql))[0] for _ in range(2))
        assert "<|im_end|>" not in second
        assert len(first) < len(second) <= len(first) + 4_100
    assert parse_calls(second, env.tools) == []
