"""Curricula: what is drawn, that it is decided by the seed, and when success rates are believed."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from toolgym import ConfigurationError, Task, TaskSet, registration, rollout
from toolgym.curriculum import (
    FormatMismatch,
    HardnessCurriculum,
    SuccessCurriculum,
    mixed_chance,
)
from toolgym.policies import ExpertPolicy
from toolgym.records import EpisodeRecord

LEVELS = ("easy", "medium", "hard", "extra")
TURN = {"valid": True, "errors": []}
RECORD = EpisodeRecord(
    env_id="x/X-v0",
    task_id="t0",
    seed=0,
    question="?",
    turns=(TURN, TURN),
    score=1.0,
    correct=True,
    scored=True,
    answered=True,
    progress_bin=0,
    reward_parts={},
)


def tasks(n=40):
    return TaskSet([Task(f"t{i}", "?", extra={"hardness": LEVELS[i % 4]}) for i in range(n)])


def episodes(task_id, right, wrong, **changes):
    record = replace(RECORD, task_id=task_id, **changes)
    return [record] * right + [replace(record, correct=False)] * wrong


def levels(drawn):
    return Counter(LEVELS[int(task_id[1:]) % 4] for task_id in drawn)


def test_a_step_is_drawn_by_the_weights_of_the_levels_without_repeating_a_task():
    curriculum = HardnessCurriculum(tasks(400), {"easy": 3, "hard": 1}, seed=1)
    drawn = [curriculum.draw(step, 8) for step in range(200)]
    counted = sum(map(levels, drawn), Counter())

    assert counted.keys() == {"easy", "hard"}
    assert 0.68 < counted["easy"] / 1600 < 0.82
    assert all(len(set(step)) == 8 for step in drawn)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: HardnessCurriculum(tasks(), {"easy": 1, "hard": 1}, seed=s),
        lambda s: SuccessCurriculum(tasks(), seed=s),
    ],
)
def test_what_is_drawn_is_decided_by_seed_and_step(make):
    assert make(3).draw(7, 5) == make(3).draw(7, 5)
    assert make(3).draw(7, 5) != make(4).draw(7, 5)
    assert make(3).draw(7, 5) != make(3).draw(8, 5)


def test_the_chance_of_a_mixed_group_comes_to_the_formula_for_a_rate_that_is_known():
    for rate in (0.1, 0.5, 0.9):
        exact = 1 - rate**8 - (1 - rate) ** 8
        assert mixed_chance(1e6 * rate, 1e6 * (1 - rate), 8) == pytest.approx(exact, abs=1e-4)


def test_groups_that_are_neither_all_right_nor_all_wrong_are_preferred():
    curriculum = SuccessCurriculum(tasks(3), keep=1.0, even=0.0)
    for task_id, right, wrong in (("t0", 40, 0), ("t1", 20, 20), ("t2", 0, 40)):
        curriculum.observe(episodes(task_id, right, wrong))
    weights = curriculum.weights()

    assert weights["t1"] > 3 * weights["t0"]
    assert weights["t0"] == pytest.approx(weights["t2"])
    assert sum(weights.values()) == pytest.approx(1)
    assert curriculum.rate("t1") == 0.5


BROKEN = {"valid": False, "errors": ["no_call"]}
MISMATCHES = {
    "calls that are not bound": (
        {"turns": (TURN, BROKEN, BROKEN)},
        r"only 33% of the turns hold calls that can be bound \(\d+ no_call\): warm the model up",
    ),
    "no answers": (
        {"answered": False},
        "only 0% of the episodes end with an answer: allow more tokens",
    ),
    "answers in a form that is not read": (
        {"progress_bin": 10},
        "100% of the answers are judged wrong although the result had been found",
    ),
}


@pytest.mark.parametrize(("changes", "words"), MISMATCHES.values(), ids=MISMATCHES.keys())
def test_rates_that_speak_of_the_format_are_not_used(changes, words):
    strict, patient = (
        SuccessCurriculum(tasks(4), on_mismatch=choice) for choice in ("raise", "even")
    )
    for curriculum in (strict, patient):
        curriculum.observe(episodes("t0", 0, 64, **changes))

    with pytest.raises(FormatMismatch, match=words):
        strict.draw(0, 2)
    assert set(patient.weights().values()) == {0.25}
    assert len(patient.doubts()) == 1


def test_a_state_goes_through_json_and_goes_on_as_if_nothing_had_happened():
    first, second = SuccessCurriculum(tasks()), SuccessCurriculum(tasks())
    for place in range(20):
        first.observe(episodes(f"t{place}", place % 9, 8 - place % 9))
    second.restore(json.loads(json.dumps(first.state())))
    for curriculum in (first, second):
        curriculum.observe(episodes("t30", 4, 4))

    assert first.state() == second.state()
    assert [first.draw(s, 4) for s in range(9)] == [second.draw(s, 4) for s in range(9)]
    with pytest.raises(ConfigurationError, match="no state of a SuccessCurriculum"):
        second.restore({})


class WeakPolicy:
    """The expert on easy tasks; on hard ones it answers nonsense; on others now this, now that."""

    name = "weak"

    def __init__(self):
        self.expert = ExpertPolicy()

    def act(self, situations):
        return [self.one(situation) for situation in situations]

    def one(self, situation):
        chance = {"easy": 10, "medium": 5}.get(situation.env.task.hardness, 0)
        if situation.slot % 10 >= chance:
            return {"name": "answer", "arguments": {"value": "nonsense"}}
        return self.expert.act([situation])[0]


@pytest.mark.nightly
def test_with_real_episodes_the_tasks_that_teach_come_to_the_front():
    env_id, chosen = "sqlgym/Explore-v0", registration.make("sqlgym/Explore-v0").tasks.take(24)
    curriculum = SuccessCurriculum(chosen, group_size=10, even=0.0)
    for step in range(6):
        ids = [task_id for task_id in curriculum.draw(step, 8) for _ in range(10)]
        records = list(rollout.run(env_id, WeakPolicy(), ids, batch=20, dataset=chosen))
        curriculum.observe(records)
    weights = curriculum.weights()
    by_level = {
        level: [weights[task.id] for task in chosen if task.hardness == level]
        for level in ("easy", "medium", "hard")
    }
    tried = {task_id for task_id, counts in curriculum.state()["counts"].items() if sum(counts)}

    assert len(tried) > 12
    mean = {level: sum(found) / len(found) for level, found in by_level.items()}
    assert mean["medium"] > 1.3 * mean["easy"]
    assert mean["medium"] > 1.3 * mean["hard"]
