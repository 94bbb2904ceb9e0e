"""Values that a tool shows can be submitted as answers, even if they hold control tokens."""

import sqlite3

import pytest

from sqlgym.datasets.family import SqlTaskFamily
from toolgym import make, play

NAMES = [
    "<s>old price</s>",
    r"<\s>genuine backslash",
    r"<\\s>two",
    "<|im_end|> | bar",
    'quote "<tool_call>"\n[INST]',
    "</think> plain",
]


@pytest.fixture
def rows(tmp_path):
    connection = sqlite3.connect(tmp_path / "odd.sqlite")
    connection.execute('CREATE TABLE "notes" (id INTEGER PRIMARY KEY, name TEXT, price REAL)')
    prices = [(name, 10.5 * place + 1) for place, name in enumerate(NAMES)]
    connection.executemany("INSERT INTO notes (name, price) VALUES (?, ?)", prices)
    connection.commit()
    queries = [f"SELECT name FROM notes WHERE id = {place + 1}" for place in range(len(NAMES))]
    queries += [
        "SELECT name, price FROM notes",
        f"SELECT price FROM notes WHERE name = '{NAMES[1]}'",
    ]
    queries += ["SELECT price FROM notes WHERE name = '<s>old price</s>'"]
    return [{"question": "What is it?", "query": sql, "db_id": "odd"} for sql in queries]


@pytest.mark.parametrize("render", ["table", "json"])
@pytest.mark.parametrize(
    ("env_id", "options"),
    [("sqlgym/Explore-v0", {}), ("sqlgym/TextToSQL-v0", {"match": "sound"})],
)
def test_the_expert_answers_questions_about_data_with_control_tokens(
    rows, tmp_path, env_id, options, render
):
    env = make(env_id, dataset=rows, databases=tmp_path, render=render, **options)
    for task_id in env.tasks.ids:
        record = play(env, "expert", task_id=task_id)
        assert record.correct, record.to_json()["turns"]
        assert not any(error for turn in record.turns for error in turn["errors"])
        assert not any("<s>" in str(turn["action"]) for turn in record.turns)
        assert SqlTaskFamily().recheck(env, env.task, record.turns) is True


def explore(rows, tmp_path, place):
    env = make("sqlgym/Explore-v0", dataset=rows, databases=tmp_path)
    env.reset(options={"task_id": env.tasks.ids[place]})
    return env


def is_right(env, value):
    return env.step({"name": "answer", "arguments": {"value": value}})[4]["correct"]


def test_a_copied_answer_is_right_and_one_that_differs_is_wrong(rows, tmp_path):
    for place, value, right in [
        (0, r"<\s>old price<\/s>", True),  # as it is shown
        (0, "<s>old price</s>", True),  # as it is
        (0, r"<\\s>old price<\/s>", False),
        (1, r"<\\s>genuine backslash", True),
        (1, "<s>genuine backslash", False),
        (2, r"<\\\s>two", True),
        (2, r"<\\s>two", False),
    ]:
        assert is_right(explore(rows, tmp_path, place), value) is right, (place, value)


def test_a_literal_in_a_query_is_what_was_shown(rows, tmp_path):
    env = explore(rows, tmp_path, 0)
    shown = env.query("SELECT name FROM notes WHERE id < 3").splitlines()[1:]
    assert shown == [r"<\s>old price<\/s>", r"<\\s>genuine backslash"]
    for place, name in enumerate(shown, start=1):
        assert env.query(f"SELECT id FROM notes WHERE name = '{name}'") == f"id\n{place}"
