"""A try draws by its task and number: shards play exactly what one run would have played."""

import json
import random
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest

from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError, policies, rollout
from toolgym.records import Evaluation

SQL, FLOW = "sqlgym/Explore-v0", "aflowgym/Compose-v0"


class Tossing:
    """Right in about half of the tries, by a draw of the situation's seed in each turn."""

    name = "tossing"

    def act(self, situations):
        return [self.one(each) for each in situations]

    def one(self, situation):
        turn = len(situation.env.episode.turns)
        draw = random.Random(f"{situation.seed}-{turn}").random()
        if draw < 0.3:
            return {"name": "peek", "arguments": {"dial": 1 + int(draw * 10)}}
        code = situation.env.task.extra["code"] if draw < 0.6 else f"{draw:.3f}"[-3:]
        return {"name": "open", "arguments": {"code": code}}


@pytest.fixture
def lock_id(lock_env):
    gym.register("toy/Lock-v0", entry_point=lambda **kwargs: lock_env(**kwargs))
    yield "toy/Lock-v0"
    del gym.registry["toy/Lock-v0"]


def by_name(records):
    records = list(records)
    named = {(record.task_id, record.number): record.to_json() for record in records}
    assert len(named) == len(records)
    return named


@pytest.mark.parametrize(
    ("env_id", "policy", "options"),
    [
        ("toy/Lock-v0", Tossing, {}),
        (SQL, lambda: policies.RandomPolicy(seed=3), {"n": 4}),
    ],
)
def test_shards_by_tasks_equal_one_run_record_by_record(lock_id, env_id, policy, options):
    one = rollout.evaluate(env_id, policy(), k=2, seed=5, **options)
    played = policy()  # the same one plays all of them, and brings nothing along
    shards = [
        rollout.evaluate(env_id, played, k=2, shard=(part, 3), seed=5, **options)
        for part in (1, 2, 3)
    ]
    merged = Evaluation.merged(shards)

    assert [r.to_json() for r in merged.records] == [r.to_json() for r in one.records]
    assert merged.summary() == one.summary()
    assert merged.pass_at_k == one.pass_at_k


def test_the_order_of_the_tasks_the_batch_and_what_was_played_before_change_no_try(lock_id):
    ids = [record.task_id for record in rollout.evaluate(lock_id, Tossing(), k=3).records]
    shuffled = random.Random(1).sample(ids, len(ids))
    for policy in (Tossing(), policies.RandomPolicy(seed=2)):
        usual = by_name(rollout.evaluate(lock_id, policy, task_ids=ids, seed=8))
        others = [
            by_name(rollout.evaluate(lock_id, policy, task_ids=order, seed=8, batch=batch))
            for order, batch in ((ids[::-1], 64), (shuffled, 1), (ids, 5))
        ]

        assert all(other == usual for other in others)
        assert by_name(rollout.evaluate(lock_id, policy, task_ids=ids, seed=9)) != usual


def test_one_episode_played_by_itself_is_the_try_that_it_is_named(lock_id):
    for record in rollout.evaluate(lock_id, Tossing(), k=3, seed=4).records:
        alone = rollout.play(
            lock_id, Tossing(), seed=4, task_id=record.task_id, number=record.number
        )
        assert alone == record


def test_what_is_not_one_whole_measurement_is_not_merged(lock_id):
    first, second = (rollout.evaluate(lock_id, Tossing(), k=2, shard=(i, 2)) for i in (1, 2))
    unnamed = tuple(replace(record, number=None) for record in first.records)
    other = tuple(replace(record, env_id="toy/Other-v0") for record in second.records)
    for parts, told in (
        ([first, second, first], "2 tasks are in more than one evaluation"),
        ([Evaluation(first.records * 2, 2)], r"the attempts \[0, 1, 0, 1\]"),
        ([Evaluation(unnamed, 2)], r"the attempts \[None, None\].*no numbers"),
        ([first, Evaluation(other, 2)], "these are of toy/Lock-v0, toy/Other-v0"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            Evaluation.merged(parts)
    with pytest.raises(ConfigurationError, match="there are 4 tasks; cut them into fewer"):
        rollout.evaluate(lock_id, Tossing(), shard=(1, 9))


def test_the_command_plays_shards_and_merges_their_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    play = ("eval", SQL, "--policy", "random", "--n", 2, "--k", 3, "--seed", 3, "--json", "--out")
    shards = (), ("--shard", "1/2"), ("--shard", "2/2")
    whole, _, part = (
        json.loads(run_here(*play, f"{name}.jsonl", *shard).stdout)
        for name, shard in enumerate(shards)
    )
    put_together = run_here("merge", "1.jsonl", "2.jsonl", "--out", "3.jsonl", "--json")
    merged = json.loads(put_together.stdout)

    assert (part["shard"], part["episodes"]) == ("2/2", 3)
    for name in ("accuracy", "interval", "mean_score", "episodes", "pass_at_k"):
        assert merged[name] == whole[name], name
    assert Path("3.jsonl").read_bytes() == Path("0.jsonl").read_bytes()
    assert "more than one evaluation" in run_here("merge", "1.jsonl", "1.jsonl").stderr
    Path("2.jsonl").write_bytes(Path("2.jsonl").read_bytes()[:-20])
    assert "is incomplete" in run_here("merge", "1.jsonl", "2.jsonl").stderr
