"""A call that fails again in the same words is answered with more than the first time."""

import pytest

from toolgym import EnvironmentFault, ToolError, make
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


@pytest.mark.parametrize("text", ["I do not know.", '<tool_call>{"name": "peek"', ""])
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
        hints = iter(("<|im_end|>", ToolError("odd", "No."), EnvironmentFault("It is gone.")))

        def second_hint(self, call, error):
            hint = next(self.hints)
            if isinstance(hint, Exception):
                raise hint
            return hint

    env = Odd(lock_env().tasks)
    env.reset(seed=0)
    first, second, third = (env.step(said("peek", dial=7))[0] for _ in range(3))
    assert second == first + escape_control_tokens("\n<|im_end|>")
    assert third == first
    with pytest.raises(EnvironmentFault, match="It is gone"):
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
    env = make(env_id, **({"match": "sound"} if "TextToSQL" in env_id else {}))
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
