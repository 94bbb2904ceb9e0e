"""A try draws by its task and number: shards play exactly what one run would have played."""

import json
import random
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest
from typer.testing import CliRunner

from tests.chat_server import ScriptedServer
from toolgym import ConfigurationError, policies, rollout
from toolgym.chat.client import ChatClient
from toolgym.chat.settings import ChatSettings
from toolgym.cli import application
from toolgym.commands.episode_output import write_records
from toolgym.policies.chat import ChatPolicy
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


def players():
    return [
        ("toy/Lock-v0", Tossing, {}),
        ("toy/Lock-v0", lambda: policies.RandomPolicy(seed=3), {}),
        (SQL, lambda: policies.RandomPolicy(seed=3), {"n": 4}),
        (FLOW, lambda: policies.RandomPolicy(seed=3), {"n": 3}),
    ]


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
    assert merged.pass_at_k == one.pass_at_k


def test_the_tries_at_a_task_differ(lock_id):
    played = rollout.evaluate(lock_id, Tossing(), k=4, seed=5).records
    draws = {json.dumps(record.to_json()["turns"]) for record in played}
    assert len(draws) > len({record.task_id for record in played})


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


def test_a_policy_that_plays_twice_begins_anew(lock_id):
    expert, script = policies.ExpertPolicy(), policies.ScriptedPolicy([{"name": "peek"}])
    assert [rollout.evaluate(lock_id, expert).accuracy for _ in range(2)] == [1.0, 1.0]
    first, again = (rollout.play(lock_id, script, seed=1) for _ in range(2))
    assert first == again


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
        parts = [seeds(k=4, shard=(part, 2)) for part in (1, 2)]
    assert len(set(whole)) == 16
    assert sorted(seed for part in parts for seed in part) == whole


def test_what_is_not_one_whole_measurement_is_not_merged(lock_id):
    first, second = (rollout.evaluate(lock_id, Tossing(), k=2, shard=(i, 2)) for i in (1, 2))
    with pytest.raises(ConfigurationError, match=r"2 tasks are in more than one evaluation"):
        Evaluation.merged([first, second, first])
    more = rollout.evaluate(lock_id, Tossing(), k=3, shard=(2, 2))
    with pytest.raises(
        ConfigurationError, match=r"every task needs 3 tries, .* the tries \[0, 1\]"
    ):
        Evaluation.merged([first, more])
    with pytest.raises(ConfigurationError, match=r"the tries \[0, 1, 0, 1\]"):
        Evaluation.merged([Evaluation(first.records * 2, 2)])
    unnamed = tuple(replace(record, number=None) for record in first.records)
    with pytest.raises(ConfigurationError, match=r"the tries \[None, None\].*no numbers"):
        Evaluation.merged([Evaluation(unnamed, 2)])
    other = tuple(replace(record, env_id="toy/Other-v0") for record in second.records)
    with pytest.raises(ConfigurationError, match="these are of toy/Lock-v0, toy/Other-v0"):
        Evaluation.merged([first, Evaluation(other, 2)])
    with pytest.raises(ConfigurationError, match="these are of none"):
        Evaluation.merged([])


def test_wrong_shards_are_told_what_to_do(lock_id):
    with pytest.raises(ConfigurationError, match="the shards are 1/2 to 2/2"):
        rollout.evaluate(lock_id, Tossing(), shard=(3, 2))
    with pytest.raises(ConfigurationError, match="there are 4 tasks; cut them into fewer"):
        rollout.evaluate(lock_id, Tossing(), shard=(1, 9))


def told(*arguments):
    """What `toolgym eval sqlgym/Explore-v0 --json ARGUMENTS` prints."""
    done = CliRunner().invoke(application(), ["eval", SQL, "--json", *arguments])
    return json.loads(done.stdout) if done.exit_code == 0 else done.stderr


def put_together(*arguments):
    """What `toolgym merge --json ARGUMENTS` prints."""
    done = CliRunner().invoke(application(), ["merge", "--json", *arguments])
    return json.loads(done.stdout) if done.exit_code == 0 else done.stderr


@pytest.mark.parametrize("text", ["0/2", "3/2", "1/0", "1", "a/b", "1/2/3", "-1/2", ""])
def test_a_shard_that_there_is_not_is_refused(text):
    assert "shard" in told("--policy", "random", "--n", "2", "--shard", text)


def test_the_command_plays_shards_and_merges_their_files(tmp_path):
    common = ["--policy", "random", "--n", "2", "--k", "3", "--seed", "3"]
    whole, first, last, both = (str(tmp_path / f"{name}.jsonl") for name in range(4))
    expected = rollout.evaluate(SQL, policies.RandomPolicy(3), k=3, n=2, seed=3, split="dev")
    write_records(expected, Path(whole))
    told(*common, "--shard", "1/2", "--out", first)
    part = told(*common, "--shard", "2/2", "--out", last)
    merged = put_together(first, last, "--out", both)

    assert (part["shard"], part["episodes"]) == ("2/2", 3)
    summary = expected.summary()
    assert {name: merged.get(name) for name in summary} == {**summary, "refused": None}
    assert merged["merged"] == [first, last]
    assert Path(both).read_bytes() == Path(whole).read_bytes()
    assert "more than one evaluation" in put_together(first, first)
    assert "There is no run folder nowhere.jsonl" in put_together("nowhere.jsonl")
    Path(last).write_bytes(Path(last).read_bytes()[:-20])
    assert "is incomplete, because" in put_together(first, last)
