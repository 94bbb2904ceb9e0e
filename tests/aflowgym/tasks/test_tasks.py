"""The bundled workflow tasks: sound, split by item."""

import functools
import json
from pathlib import Path

import pytest

from aflowgym.tasks.loading import load_tasks
from aflowgym.tasks.task import KINDS, judge
from tests.sweeps import sweep

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "data" / "workflows"
SPLITS = ("train", "dev", "test")


@functools.cache
def every():
    return [task for split in SPLITS for task in load_tasks("bundled", split)]


@pytest.fixture(scope="module", params=sweep(["every twelfth", "all"], ["every twelfth"]))
def tasks(request):
    return every() if request.param == "all" else every()[::12]


def test_there_are_enough_tasks_of_every_kind_in_every_split_and_none_is_refused():
    assert len(every()) >= 300
    for split in SPLITS:
        tasks = load_tasks("bundled", split)
        assert not tasks.check()
        assert {task.kind for task in tasks} == set(KINDS)


def test_no_item_question_or_id_is_in_two_splits():
    for name in ("item", "question", "id"):
        parts = [{getattr(t, name) for t in load_tasks("bundled", split)} for split in SPLITS]
        assert sum(map(len, parts)) == len(set().union(*parts))
        assert name == "item" or sum(map(len, parts)) == len(every())


def test_the_gold_is_right_and_every_distractor_wrong(tasks):
    for task in tasks:
        if task.kind == "code":
            continue
        said = (task.gold, f"The answer is {task.gold}.", f"\\boxed{{{task.gold}}}")
        for text in (*said, *task.aliases):
            assert judge(task, text).correct is True, task.id
        assert task.distractors
        for distractor in task.distractors:
            assert judge(task, f"The answer is {distractor}.").correct is False, task.id


@pytest.mark.nightly
def test_every_chain_stands_in_the_fact_base_and_in_the_passages_and_ends_in_the_gold():
    base = json.loads((DATA / "facts.json").read_text(encoding="utf-8"))
    for task in (task for task in every() if task.kind == "qa"):
        chain = task.extra["chain"]
        assert len(chain) == task.hops >= 2
        for subject, _, found in chain:
            about = [p for p in task.context if subject.lower() in p.lower() and found in p]
            assert about, (task.id, subject, found)
        assert all(fact in base[task.item] for fact in chain)
        compared = len({relation for _, relation, _ in chain}) == 1
        assert task.gold in [f[0] for f in chain] if compared else chain[-1][2] == task.gold
