"""A try is named by its task and number: shards play exactly what one run would have played."""

import json
import random
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from toolgym import ConfigurationError, policies, rollout
from toolgym.chat.client import ChatClient
from toolgym.chat.settings import ChatSettings
from toolgym.cli import application
from toolgym.commands.episode_output import write_records
from toolgym.policies.chat import ChatPolicy
from toolgym.records import Evaluation
from toolgym.testing.chat_server import ScriptedServer
from toolgym.tries import Shard

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


def players():
    return [
        ("toy/Lock-v0", Tossing, {}),
        ("toy/Lock-v0", lambda: policies.random(seed=3), {}),
        (SQL, lambda: policies.random(seed=3), {"n": 4}),
        (FLOW, lambda: policies.random(seed=3), {"n": 3}),
    ]


def test_two_shards_by_tries_equal_one_run_record_by_record(lock_id):
    one = rollout.evaluate(lock_id, Tossing(), k=4, seed=5, batch=7)
    shards = [
        rollout.evaluate(lock_id, Tossing(), k=k, start=start, seed=5, batch=batch)
        for start, k, batch in ((0, 3, 64), (3, 1, 2))
    ]
    merged = Evaluation.merged(shards)

    assert [r.to_json() for r in merged.records] == [r.to_json() for r in one.records]
    assert merged.summary() == one.summary()
    assert merged.pass_at_k == one.pass_at_k
    assert {record.number for record in shards[1].records} == {3}
    own_draws = {json.dumps(record.to_json()["turns"]) for record in one.records}
    assert len(own_draws) > len({record.task_id for record in one.records})  # tries do differ


@pytest.mark.parametrize(("env_id", "policy", "options"), players())
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


def test_the_order_of_the_tasks_the_batch_and_what_was_played_before_change_no_try(lock_id):
    ids = [record.task_id for record in rollout.evaluate(lock_id, Tossing(), k=3).records]
    shuffled = random.Random(1).sample(ids, len(ids))
    for policy in (Tossing(), policies.random(seed=2)):
        usual = by_name(rollout.run(lock_id, policy, ids, seed=8))
        others = [
            by_name(rollout.run(lock_id, policy, order, seed=8, batch=batch))
            for order, batch in ((ids[::-1], 64), (shuffled, 1), (ids, 5))
        ]
        alone = {
            name: rollout.run(lock_id, policy, [name[0]], start=name[1], seed=8) for name in usual
        }

        assert all(other == usual for other in others)
        assert {name: next(records).to_json() for name, records in alone.items()} == usual
        assert by_name(rollout.run(lock_id, policy, ids, seed=9)) != usual


def test_one_episode_played_by_itself_is_the_try_that_it_is_named(lock_id):
    for record in rollout.evaluate(lock_id, Tossing(), k=3, seed=4).records:
        alone = rollout.play(
            lock_id, Tossing(), seed=4, task_id=record.task_id, number=record.number
        )
        assert alone == record


def test_a_policy_that_plays_twice_begins_anew(lock_id):
    expert, script = policies.expert(), policies.scripted([{"name": "peek"}])
    assert [rollout.evaluate(lock_id, expert).accuracy for _ in range(2)] == [1.0, 1.0]
    first, again = (rollout.play(lock_id, script, seed=1) for _ in range(2))
    assert first == again
    ids = ["lock-407"] * 3
    interleaved = zip(*(rollout.run(lock_id, expert, ids, batch=1) for _ in range(2)), strict=True)
    assert all(one.correct and other.correct for one, other in interleaved)


def test_the_seeds_that_a_server_is_sent_are_those_of_the_tries(lock_id):
    pytest.importorskip("openai", reason="needs the extra openai")
    asked = []

    def answer(body):
        asked.append(body["seed"])
        return f'open(code="{body["seed"] % 1000:03}")'

    with ScriptedServer(answer) as server:

        def seeds(**options):
            asked.clear()
            client = ChatClient(ChatSettings(model="m", base_url=server.url))
            rollout.evaluate(lock_id, ChatPolicy(client, seed=1), seed=2, **options)
            return sorted(asked)

        whole = seeds(k=4)
        parts = [seeds(k=2, start=start, shard=(part, 2)) for start in (0, 2) for part in (1, 2)]
    assert len(set(whole)) == 16
    assert sorted(seed for part in parts for seed in part) == whole


def test_a_try_that_is_there_twice_is_refused_by_its_name(lock_id):
    shard = rollout.evaluate(lock_id, Tossing(), k=2)
    with pytest.raises(ConfigurationError, match=r"8 tries are there more than once \(try 0 of "):
        Evaluation.merged([shard, shard])
    further = rollout.evaluate(lock_id, Tossing(), k=2, start=1)
    with pytest.raises(ConfigurationError, match=r"4 tries .* \(try 1 of .* --start"):
        Evaluation.merged([shard, further])


def test_what_is_not_one_whole_measurement_is_not_merged(lock_id):
    shard = rollout.evaluate(lock_id, Tossing(), k=2)
    more = rollout.evaluate(lock_id, Tossing(), start=2, shard=(1, 2))
    with pytest.raises(ConfigurationError, match="2 tasks have fewer than 3 tries"):
        Evaluation.merged([shard, more])
    unnamed = tuple(replace(record, number=None) for record in shard.records)
    with pytest.raises(ConfigurationError, match="does not tell which try it is"):
        Evaluation.merged([Evaluation(unnamed, 2)])
    other = tuple(replace(record, env_id="toy/Other-v0") for record in shard.records)
    with pytest.raises(ConfigurationError, match="these are of toy/Lock-v0, toy/Other-v0"):
        Evaluation.merged([shard, Evaluation(other, 2)])
    with pytest.raises(ConfigurationError, match="these are of none"):
        Evaluation.merged([])


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "1", "a/b", "1/2/3", "-1/2", ""])
def test_a_shard_that_there_is_not_is_refused(text):
    with pytest.raises(ConfigurationError, match="shard"):
        Shard.parse(text)


def test_wrong_shards_are_told_what_to_do(lock_id):
    with pytest.raises(ConfigurationError, match="start at least 0"):
        rollout.evaluate(lock_id, Tossing(), start=-1)
    with pytest.raises(ConfigurationError, match="from 1/2 to 2/2"):
        rollout.evaluate(lock_id, Tossing(), shard=(3, 2))
    with pytest.raises(ConfigurationError, match="there are 4 tasks; cut them into fewer"):
        rollout.evaluate(lock_id, Tossing(), shard=(1, 9))


def told(*arguments):
    """What `toolgym eval sqlgym/Explore-v0 --json ARGUMENTS` prints."""
    done = CliRunner().invoke(application("eval"), ["eval", SQL, "--json", *arguments])
    return json.loads(done.stdout) if done.exit_code == 0 else done.stderr


def test_the_command_plays_shards_and_merges_their_files(tmp_path):
    common = ["--policy", "random", "--n", "2", "--seed", "3"]
    files = [str(tmp_path / f"{number}.jsonl") for number in range(5)]
    for file, k in ((files[0], 3), (files[1], 2)):
        whole = rollout.evaluate(SQL, policies.random(3), k=k, n=2, seed=3, split="dev")
        write_records(whole, Path(file))
    told(*common, "--start", "2", "--shard", "1/2", "--out", files[2])
    last = told(*common, "--start", "2", "--shard", "2/2", "--out", files[3])
    shards = [word for file in files[1:4] for word in ("--merge", file)]
    merged = told(*shards, "--out", files[4])

    assert (last["start"], last["shard"], last["episodes"]) == (2, [2, 2], 1)
    whole = rollout.evaluate(SQL, policies.random(3), k=3, n=2, seed=3, split="dev").summary()
    assert {name: merged.get(name) for name in whole} == {**whole, "refused": None}
    assert merged["merged"] == files[1:4]
    assert (tmp_path / "4.jsonl").read_bytes() == (tmp_path / "0.jsonl").read_bytes()
    assert "more than once" in told(*shards, "--merge", files[3])
    assert "there is no such file" in told("--merge", "nowhere.jsonl")
    (tmp_path / "3.jsonl").write_bytes((tmp_path / "3.jsonl").read_bytes()[:-20])
    assert "was not written to its end" in told(*shards)
