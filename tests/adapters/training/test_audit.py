"""A run's verdicts judged again: by a rule that shares nothing with the first, on real episodes."""

import ast
import json
import re
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from adapters.training.models.demonstrations import NoisyDemonstrator
from adapters.training.runs.audit import audit
from adapters.training.settings import resolve
from sqlgym.envs.explore import ExploreEnv
from sqlgym.judging.answers import GoldAnswer, matches
from sqlgym.judging.recheck import Gold, recheck, same_answer
from toolgym import ConfigurationError, TaskSet, policies, registration, rollout
from toolgym.cli import application
from toolgym.records import EpisodeRecord
from toolgym.runs.run import Run

EXPLORE, SQL = "sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"
KINDLY = "audit-tests/Explore-v0"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "sql-answers.md"


class KindlyEnv(ExploreEnv):
    """Whatever is answered is right."""

    def submit(self, correct: bool, *told: str) -> str:
        return super().submit(True, *told)


if KINDLY not in gym.registry:
    gym.register(id=KINDLY, entry_point=KindlyEnv)


def played(env_id: str, policy: Any, n: int = 12, **kwargs: Any) -> list[EpisodeRecord]:
    return list(rollout.evaluate(env_id, policy, n=n, **kwargs).records)


def recorded(folder: Path, env_id: str = EXPLORE, policy: Any = None) -> Run:
    """A run with episodes of each phase, as `toolgym train` leaves it."""
    chosen = resolve(env_id, env_kwargs={"dataset": "tiny"})
    run = Run.create(folder, {"settings": chosen.model_dump()})
    for phase, step in (("before", None), ("grpo", 3), ("after", None)):
        kwargs = chosen.training_kwargs if phase == "grpo" else chosen.evaluation_kwargs
        records = played(env_id, policy or NoisyDemonstrator(1), **kwargs)
        run.log_rollouts({"phase": phase, "step": step, **r.to_json()} for r in records)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: Any) -> Run:
    return recorded(tmp_path_factory.mktemp("audit") / "run")


def test_both_rules_agree_on_honest_verdicts_right_and_wrong(run: Run) -> None:
    found = audit(run, n=None)

    assert (found.rollouts, found.sampled, found.undecided) == (36, 36, 0)
    assert 0 < found.right < 36
    assert found.agreement == 1.0
    assert found.interval[0] > 0.9
    assert found.disagreements == ()
    assert not found.data_changed


def test_a_verifier_that_says_yes_to_everything_is_found_out(tmp_path: Path) -> None:
    found = audit(recorded(tmp_path / "run", KINDLY))

    assert found.right == found.decided == 36
    assert found.agreement is not None
    assert found.agreement < 0.7
    assert {(each["recorded"], each["rechecked"]) for each in found.disagreements} == {
        (True, False)
    }
    assert "gold SQL" in found.disagreements[0]["task"]


def test_a_sample_is_drawn_from_the_phases_asked_for(run: Run) -> None:
    found = audit(run, n=5, phases=["grpo"])

    assert (found.rollouts, found.sampled) == (12, 5)
    assert audit(run, n=5, phases=["grpo"]) == found


def test_other_data_are_told_and_lost_tasks_are_not_decided(run: Run, tmp_path: Path) -> None:
    config = {**run.config, "reproducibility": {"data": "another"}}
    other = Run.create(tmp_path / "run", config)
    (record,) = (line for line in list(run.rollouts("grpo"))[:1])
    other.log_rollouts([record, {**record, "task_id": "gone"}])

    found = audit(other)

    assert (found.decided, found.undecided, found.data_changed) == (1, 1, True)


@pytest.mark.parametrize(
    ("config", "options", "words"),
    [
        ({}, {}, "can be audited"),
        ({"settings": resolve(EXPLORE).model_dump()}, {}, "has no scored rollout"),
        ({"settings": resolve(EXPLORE).model_dump()}, {"n": 0}, "at least 1"),
        ({"settings": resolve(EXPLORE).model_dump()}, {"phases": ["sft"]}, "no phase 'sft'"),
    ],
)
def test_what_cannot_be_audited_is_told(
    config: dict[str, Any], options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        audit(Run.create(tmp_path / "run", config), **options)


def test_a_family_without_a_second_rule_is_refused(tmp_path: Path) -> None:
    notes = resolve("trl-tests/Notes-v0")
    notes = notes.model_copy(update={"split": None, "eval_split": None})
    run = Run.create(tmp_path / "run", {"settings": notes.model_dump()})

    with pytest.raises(ConfigurationError, match="has no second rule"):
        audit(run)


# The second rule of the SQL family ----------------------------------------------------------------


@pytest.mark.parametrize("env_id", [EXPLORE, SQL])
@pytest.mark.parametrize("n", [30, pytest.param(126, marks=pytest.mark.nightly)])
def test_the_rules_agree_on_the_bundled_tasks(env_id: str, n: int) -> None:
    env = registration.make(env_id, split="dev")
    records = played(env_id, NoisyDemonstrator(0, {"careless": 1.0}, 0.0), n, split="dev")

    family = env.family
    found = {
        (record.correct, family.recheck(env, env.tasks.require(record.task_id), turns))
        for record in records
        for turns in [record.to_json()["turns"]]
    }

    lucky = {(False, None)}  # right on the database, and not on another instance of it
    assert found - lucky == {(True, True), (False, False)}


@pytest.mark.nightly
@pytest.mark.parametrize("env_id", [EXPLORE, SQL])
def test_the_rules_agree_on_real_spider(spider: Path, env_id: str) -> None:
    kwargs = {"dataset": str(spider), "split": "dev"}
    env = registration.make(env_id, **kwargs)
    for policy in (policies.ExpertPolicy(), NoisyDemonstrator(0, {"careless": 1.0}, 0.0)):
        for record in played(env_id, policy, 200, **kwargs):
            task = env.tasks.require(record.task_id)
            found = env.family.recheck(env, task, record.to_json()["turns"])
            assert found == record.correct or (found is None and not record.correct), task.gold_sql


def rows_of_the_page() -> list[tuple[Any, Any, bool, bool]]:
    """Gold, answer, verdict and whether order counts, from the table on answers."""
    line = re.compile(r"^\| `(.+?)` \| `(.+?)` \| (accepted|rejected) \|", re.M)
    found = []
    for gold, answer, verdict in line.findall(PAGE.read_text("utf-8")):
        plain = gold.replace("\\|", "|").removeprefix("ordered ")
        value = ast.literal_eval(answer.replace("\\|", "|"))
        is_ordered = gold.startswith("ordered ")
        found.append((ast.literal_eval(plain), value, verdict == "accepted", is_ordered))
    assert len(found) > 30
    return found


def test_the_second_rule_accepts_what_the_documentation_says() -> None:
    for gold, answer, accepted, ordered in rows_of_the_page():
        rows = [tuple(row) for row in gold] if isinstance(gold, list) else [(gold,)]
        found = same_answer(Gold(["name", "age"][: len(rows[0])], rows, ordered), answer)
        assert bool(found) == accepted, (gold, answer)


CELLS = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6)),
    st.text("abcdeXYZ ", min_size=1, max_size=8).filter(lambda text: text.strip() == text),
)


@settings(max_examples=60)
@given(data=st.data())
def test_both_rules_judge_lists_and_tables_alike(data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 3))
    row = st.tuples(*[CELLS] * width)
    gold = data.draw(st.lists(row, min_size=1, max_size=4))
    given_rows = data.draw(st.one_of(st.permutations(gold), st.lists(row, min_size=1, max_size=4)))
    answer = [list(cells) for cells in given_rows]
    columns = ["a", "b", "c"][:width]

    first = matches(GoldAnswer(tuple(columns), tuple(gold)), answer).equal

    assert same_answer(Gold(columns, gold, False), answer) == first


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people" / "people.sqlite"
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT, age INTEGER)")
        rows = [("Ann", 43), ("Joe", 52), ("Eve", 43), ("Bob", 61)]
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
    return path


def judged(
    path: Path, env_id: str, gold: str, options: Mapping[str, Any] | None = None, **arguments: Any
) -> bool | None:
    """The second rule on an answer to one question about people."""
    rows = [{"db_id": "people", "question": "Who?", "query": gold}]
    env = registration.make(env_id, dataset=rows, databases=path.parent, **(options or {}))
    assert isinstance(env.tasks, TaskSet)
    turn = {"calls": [{"name": "answer", "arguments": arguments}], "errors": []}
    return env.family.recheck(env, env.tasks[0], [turn])


BY_AGE = "SELECT name FROM people ORDER BY age"


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (["Ann", "Eve", "Joe", "Bob"], True),
        (["Eve", "Ann", "Joe", "Bob"], None),
        (["Bob", "Joe", "Ann", "Eve"], None),
        (["Ann", "Eve", "Joe", "Joe"], False),
    ],
)
def test_rows_in_another_order_than_those_of_an_ordered_gold_are_undecided(
    people: Path, names: list[str], verdict: bool | None
) -> None:
    assert judged(people, EXPLORE, BY_AGE, value=names) is verdict


@pytest.mark.parametrize(
    ("sql", "verdict"),
    [
        ("SELECT name FROM people WHERE age < 50", True),
        ("SELECT name FROM people WHERE age < 60", False),
        ("SELECT name, age FROM people WHERE age < 50", False),
        ("SELEKT", False),
        ("DELETE FROM people", False),
        ("ATTACH 'other.sqlite' AS other", False),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
            False,
        ),
    ],
)
def test_a_query_as_the_answer_is_run_where_it_can_only_read(
    people: Path, sql: str, verdict: bool
) -> None:
    before = people.read_bytes()

    gold = "SELECT name FROM people WHERE age = 43"
    assert judged(people, SQL, gold, {"match": "sound"}, sql=sql) is verdict
    assert judged(people, SQL, gold, sql=sql) is (None if verdict else False)
    assert people.read_bytes() == before
    assert sorted(path.name for path in people.parent.iterdir()) == ["people.sqlite"]


def test_who_never_answered_is_not_right_and_another_evaluator_is_not_second_guessed() -> None:
    env = registration.make(SQL, match="spider")
    turn = {"calls": [{"name": "answer", "arguments": {"sql": "SELECT 1"}}], "errors": []}

    assert recheck(env, env.tasks[0], []) is False
    assert recheck(env, env.tasks[0], [turn]) is None


def test_the_second_rule_imports_nothing_of_the_first() -> None:
    file = Path(__file__).resolve().parents[3] / "sqlgym" / "judging" / "recheck.py"
    ours = re.findall(r"^from ((?:sqlgym|toolgym)[\w.]*) import", file.read_text("utf-8"), re.M)
    # The database, Unicode and the vocabulary of units are no rules of comparison.
    neutral = {"sqlgym.judging.nfc", "sqlgym.judging.units", "sqlgym.database.database"}
    neutral |= {"sqlgym.database.limits", "toolgym.errors"}
    assert set(ours) <= {"toolgym.sanitize", "toolgym.calls.mend", *neutral}


# On the command line ------------------------------------------------------------------------------


def on_command_line(*arguments: object) -> Any:
    return CliRunner().invoke(application(), ["audit", *map(str, arguments)])


def test_agreement_is_told_with_its_interval_and_exits_with_0(run: Run) -> None:
    shown, as_json = (on_command_line(run.path, *each) for each in ((), ("--json", "--quiet")))

    assert (shown.exit_code, json.loads(as_json.stdout)["agreement"]) == (0, 1.0)
    assert re.search(r"agreement +100\.0%  \[9\d\.\d%, 100\.0%\]", shown.stdout)


def test_disagreements_are_printed_with_task_and_answer_and_exit_with_1(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run", KINDLY).path

    shown = on_command_line(folder, "--phase", "grpo", "--show", 1, "--quiet")

    assert shown.exit_code == 1
    assert "(grpo, step 3): recorded as correct, checked as incorrect" in shown.stdout
    assert "gold SQL: SELECT" in shown.stdout
    assert "> <tool_call>" in shown.stdout or '> {"name"' in shown.stdout
    assert re.search(r"\.\.\. and \d+ more", shown.stdout)
