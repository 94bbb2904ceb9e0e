"""Each type that a notebook shows: what it tells, that it is bounded, and that data stays data."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

import aflowgym
from aflowgym.backends.simulated import SimulatedBackend
from aflowgym.dsl import nodes
from aflowgym.execution.trace import Failure, Step
from sqlgym.database.database import QueryResult, open_database
from sqlgym.tasks.task import SqlTask
from tests.toolgym.test_notebook import OURS, Read
from toolgym import EpisodeRecord, Evaluation, Task, TaskSet, rollout
from toolgym.notebook import Shown

SCRIPT = "<script>alert('x')</script>\ud800 & $x$"
ESCAPED = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\ufffd &amp; $x$"
BOUND = 400_000
"""Characters that no picture may have, whatever was given."""


@pytest.fixture(scope="module")
def episode():
    return rollout.play("sqlgym/Explore-v0", "expert", seed=10)


def load_kind(kind):
    return aflowgym.load_tasks("bundled", "dev").filter(lambda task: task.kind == kind).take(1)


def hostile_turn(text, turns=1):
    turn = {"action": text, "observation": text, "reward": 0.5, "repairs": [text], "errors": [text]}
    return (turn | {"calls": [], "valid": False},) * turns


def hostile_task(text, number=0):
    task_id = f"{number}{text}"
    return SqlTask(
        task_id, text, item=text, gold_sql=text, hardness=text, extra={text: [text, {text}]}
    )


def hostile_record(text, size):
    turns = hostile_turn(text, size)
    return EpisodeRecord(
        *("env", text, 0, text, turns, 0.5, False, True, True, 0, {text: 0.5}), fault=text, number=0
    )


def hostile_step(text, size):
    step = Step(text, text, outputs={"solution": text}, failure=Failure("E-REPLY", text))
    step.children = [Step(text[:1_000], "0")] * size
    return step


def hostile_result(text, size, failure=None):
    step = hostile_step(text, size)
    solution = text if failure is None else None
    return aflowgym.Result(solution, solution, None, failure, (), step.usage, step)


def hostile_query(text, size):
    return QueryResult((text,), ((text,),) * size, True, frozenset(), 0)


MADE = {
    "Task": lambda text, size: hostile_task(text),
    "TaskSet": lambda text, size: TaskSet([hostile_task(text)] * size, name=text),
    "EpisodeRecord": hostile_record,
    "Evaluation": lambda text, size: Evaluation((hostile_record(text, 1),) * size),
    "Parsed": lambda text, size: aflowgym.parse(
        f'Custom("{text[:9_000]}") -> Nobody("{text[:90]}")'
    ),
    "Op": lambda text, size: nodes.Op(text, text),
    "ListOf": lambda text, size: nodes.ListOf((nodes.Op(text[:1_000]),) * size),
    "Step": hostile_step,
    "Result": hostile_result,
    "failed Result": lambda text, size: hostile_result(text, size, Failure("E-REPLY", text)),
    "QueryResult": hostile_query,
}
"""By type, an object that holds a text wherever it can, and `size` times where it holds many."""


@pytest.mark.parametrize("name", MADE)
def test_hostile_text_is_shown_as_text(name):
    shown = MADE[name](SCRIPT, 1)
    page = shown._repr_html_()

    assert isinstance(shown, Shown)
    assert set(Read(page).tags) <= OURS
    assert "<script" not in page
    assert "script&gt;" in page
    if name != "Parsed":
        assert ESCAPED in page
    page.encode("utf-8")


@pytest.mark.parametrize("name", MADE)
def test_however_much_there_is_the_picture_and_the_text_beside_it_are_bounded(name):
    shown = MADE[name]("<&'\ud800>" * 200_000, 1_000)
    texts = []
    printer = type("Printer", (), {"text": lambda self, text: texts.append(text)})()

    page = shown._repr_html_()
    shown._repr_pretty_(printer, cycle=False)

    assert len(page) < BOUND
    assert sum(map(len, texts)) < 3_000
    "".join([page, *texts]).encode("utf-8")


@pytest.mark.parametrize("name", MADE)
def test_what_is_shown_is_the_same_every_time(name):
    assert MADE[name]("a", 3)._repr_html_() == MADE[name]("a", 3)._repr_html_()


def test_an_episode_shows_its_turns_and_the_parts_of_its_score(episode):
    page = episode._repr_html_()
    cells = Read(page).cells

    assert "<b>correct</b> · score 0.981 · 3 turns · mountain_huts-039" in page
    assert cells[:6] == ["turn", "action", "observation", "reward", "repairs", "errors"]
    assert cells[6 * 3 + 1] == '{"name": "answer", "arguments": {"value": 1539}}'
    assert "score = outcome +1.000, step -0.019" in page


def test_an_episode_shows_repairs_errors_and_faults(episode):
    turn = {**episode.turns[0], "repairs": ["dropped_null"], "errors": ["unknown_table"]}
    broken = replace(episode, turns=(turn,), scored=False, correct=False, fault="no disk")

    page = broken._repr_html_()

    assert "<b>unscored</b>" in page
    assert Read(page).cells[10:12] == ["dropped_null", "unknown_table"]
    assert "unscored: no disk" in page


def test_an_episode_of_a_file_that_tells_little_is_shown_all_the_same(episode):
    bare = replace(episode, turns=({"action": "hm", "reward": None},), reward_parts={"a": "b"})

    assert Read(bare._repr_html_()).cells[6:8] == ["1", "hm"]


def test_an_evaluation_shows_its_figures_and_its_first_episodes(episode):
    wrong = replace(episode, correct=False, score=0.0, number=1)
    evaluation = Evaluation((replace(episode, number=0), wrong) * 15, k=30)

    page = evaluation._repr_html_()
    cells = Read(page).cells

    low, high = evaluation.interval
    assert f"0.500, 95 % interval {low:.3f} to {high:.3f}" in cells
    assert cells[cells.index("pass@1") + 1] == "0.500"
    assert "sqlgym/Explore-v0 · 30 episodes · 30 tries a task" in page
    assert page.count("mountain_huts-039") == 20
    assert "… 10 more episodes" in page


def test_an_evaluation_counts_what_was_not_scored_and_what_was_refused(episode):
    lost = replace(episode, scored=False, correct=False, score=float("nan"))
    evaluation = Evaluation((lost,), refused=({"task_id": "t", "code": "c", "reason": "r"},))

    assert "1 episode · 1 unscored · 1 task refused" in evaluation._repr_html_()


def test_a_set_of_tasks_makes_no_more_tasks_than_it_shows():
    made = []

    class Lazy(list):
        def __getitem__(self, index):
            made.append(index)
            return Task(f"t{index}", "Why?", item="db")

    page = TaskSet(Lazy([None] * 1_000), name="many")._repr_html_()

    assert "TaskSet</b> · many · 1,000 tasks" in page
    assert "… 980 more tasks" in page
    assert max(made) <= 20


def test_an_empty_set_of_tasks_is_shown_without_a_table():
    page = TaskSet([], name="none")._repr_html_()

    assert "none · 0 tasks" in page
    assert "table" not in page


def test_each_family_says_which_of_its_attributes_a_table_shows():
    sql = TaskSet([SqlTask("a", "How many?", item="shop", hardness="easy")])
    workflows = load_kind("qa")

    assert Read(sql._repr_html_()).cells[4:] == ["a", "shop", "easy", "How many?"]
    assert Read(workflows._repr_html_()).cells[:4] == ["id", "kind", "item", "question"]
    assert Read(workflows._repr_html_()).cells[5] == "qa"


def test_a_task_shows_all_that_it_holds_and_nothing_empty():
    page = SqlTask("a", "How many?", item="shop", gold_sql="SELECT 1")._repr_html_()

    cells = Read(page).cells
    assert "<b>SqlTask</b> · a" in page
    assert cells[cells.index("gold_sql") + 1] == "SELECT 1"
    assert "evidence" not in cells


@pytest.fixture
def ask(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("CREATE TABLE t (a, b)")
        rows = [(None, "NULL"), ("<b>", 0.1 + 0.2), (b"\x00", 10**12), ("x" * 300, 1.0)]
        database.executemany("INSERT INTO t VALUES (?, ?)", rows)
        database.commit()
    return open_database(tmp_path / "shop.db").query


def test_the_result_of_a_query_is_a_table_in_which_null_is_no_text(ask):
    page = ask('SELECT a, b AS "<i>" FROM t')._repr_html_()

    assert Read(page).cells[:8] == [
        "a",
        "<i>",
        "NULL",
        "NULL",
        "<b>",
        "0.3",
        "x'00'",
        "1000000000000",
    ]
    assert page.count('opacity:.75">NULL</span>') == 1
    assert "… 100 more characters" in page


def test_the_result_of_a_query_without_rows_shows_its_columns(ask):
    page = ask("SELECT a FROM t WHERE 0")._repr_html_()

    assert "QueryResult</b> · 0 rows" in page
    assert Read(page).cells == ["a"]


def test_the_result_of_a_query_that_was_cut_says_so(ask):
    result = replace(ask("SELECT a FROM t"), truncated=True)

    assert "there are more rows" in result._repr_html_()
    assert "at least" in result.notebook_text()


def test_a_workflow_is_shown_as_its_text_and_as_what_runs_inside_what():
    page = aflowgym.parse("([Custom, Programmer] -> ScEnsemble -> Review) * 2")._repr_html_()

    assert "a workflow · 0 remarks" in page
    assert "([Custom, Programmer] -&gt; ScEnsemble -&gt; Review) * 2" in page
    assert "up to 2 times, until a check passes\n└─ one after the other\n" in page
    assert "   ├─ each on a copy of the state\n   │  ├─ Custom\n" in page


def test_a_text_that_is_no_workflow_is_shown_with_what_is_wrong_and_what_works():
    parsed = aflowgym.parse("[Custom, Custom] -> Review")

    cells = Read(parsed._repr_html_()).cells

    assert "no workflow" in parsed._repr_html_()
    assert cells[0] == "code"
    assert parsed.diagnostics[0].message in cells
    assert parsed.diagnostics[0].suggestion in cells


def test_the_result_of_a_workflow_shows_its_solution_and_every_step():
    task = load_kind("math")[0]
    workflow = aflowgym.parse("Custom -> Review ? Revise : done").workflow
    result = aflowgym.execute(workflow, task, SimulatedBackend(), seed=1)

    page = result._repr_html_()

    assert "a solution · " in page
    assert "condition" in page
    assert result.notebook_text().startswith(result.solution)
