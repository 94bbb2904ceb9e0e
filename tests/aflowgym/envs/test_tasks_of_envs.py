"""What the workflow environments tell of tasks and episodes: sets, facts, a second verdict."""

import random

import pytest

from aflowgym.tasks.loading import DRAWS, tasks_of
from toolgym import ConfigurationError, registration, rollout

COMPOSE, OPERATE = ENV_IDS = ["aflowgym/Compose-v0", "aflowgym/Operate-v0"]
ANSWER = {"name": "answer", "arguments": {}}


def run(dsl):
    return {"name": "run_workflow", "arguments": {"dsl": dsl}}


def test_tiny_holds_every_task_many_times_under_ids_of_their_own():
    tasks = tasks_of("tiny", "train")
    assert len(tasks) == DRAWS * len(tasks_of("bundled", "train"))
    assert tasks.require("math-change-1.07").question == tasks.require("math-change-1.00").question
    assert len(set(tasks.ids)) == len(tasks)
    for wrong in ("math-change-1", "math-change-1.99", "math-change-1.7", "x.01"):
        with pytest.raises(ConfigurationError, match="there is no task"):
            tasks.get(wrong)
    env = registration.make(COMPOSE, dataset="tiny", kind="math")
    rights = []
    for draw in range(DRAWS):
        env.reset(options={"task_id": f"math-change-1.{draw:02d}"})
        env.step(run("Programmer"))
        rights.append(env.step(ANSWER)[4]["correct"])
    assert len(set(rights)) == 2


@pytest.mark.parametrize("kind", ["math", "code", "qa"])
def test_one_kind_can_be_played_alone(kind):
    env = registration.make(COMPOSE, kind=kind)
    assert {task.kind for task in env.tasks} == {kind}
    assert f"\nKind: {kind}" in env.reset(seed=0)[0]


def test_the_family_tells_facts_shows_tasks_and_knows_splits(tmp_path):
    family = registration.make(COMPOSE).family
    tasks = tasks_of("bundled", "dev")
    facts = [family.facts(task, tasks) for task in tasks]
    assert {fact["kind"] for fact in facts} == {"math", "code", "qa"}
    assert all(set(fact) == {"item", "kind", "given"} for fact in facts)
    assert "2 public tests" in {fact["given"] for fact in facts}
    task = tasks_of("bundled", "train", "math")[0]
    assert family.shown(task)["gold"] == task.gold
    assert family.splits("bundled") == family.splits("tiny") == ("train", "dev", "test")
    (tmp_path / "dev.jsonl").touch()
    (tmp_path / "more.json").touch()
    assert family.splits(tmp_path) == ("dev", "more")
    with pytest.raises(ConfigurationError, match="no data set 'nowhere'"):
        family.splits("nowhere")


class Wanderer:
    """Composes or operates at random, and answers in the end."""

    name = "wanderer"

    def act(self, situations):
        return [self.next(each) for each in situations]

    def next(self, situation):
        try:
            if "novice" not in situation.memory:
                draw = random.Random(situation.seed)
                situation.memory["novice"] = situation.env.novice(draw)
                return next(situation.memory["novice"])
            return situation.memory["novice"].send(situation.observation)
        except StopIteration:
            return ""


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_a_second_rule_agrees_on_what_was_played(env_id):
    env = registration.make(env_id)
    ids = [task_id for task_id in env.tasks.ids[::4] for _ in range(2)]
    decided = disagreed = 0
    for record in rollout.evaluate(env_id, Wanderer(), task_ids=ids, seed=3):
        task = env.tasks.get(record.task_id)
        verdict = env.family.recheck(env, task, record.to_json()["turns"])
        decided += verdict is not None
        disagreed += verdict is not None and verdict != record.correct
    assert disagreed == 0
    assert decided > 0.75 * len(ids)
    assert env.family.recheck(env, task, []) is False
