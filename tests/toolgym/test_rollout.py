"""Running and scoring episodes."""

import json
import math
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym import (
    ConfigurationError,
    TaskRefused,
    TaskSet,
    evaluate,
    info_to_json,
    messages,
    policies,
    read_episodes,
    rollout,
)
from toolgym.errors import EnvironmentFault
from toolgym.intervals import mean_over_tasks, pass_at
from toolgym.records import FIGURES, EpisodeRecord, Evaluation, usage_text


@pytest.fixture
def lock_id(lock_env):
    gym.register("toy/Lock-v0", entry_point=lambda **kwargs: lock_env(**kwargs))
    yield "toy/Lock-v0"
    del gym.registry["toy/Lock-v0"]


class HalfRight:
    """Right on the first try at each task, wrong on the second, and so on."""

    name = "half right"

    def __init__(self):
        self.tries = Counter()

    def act(self, situations):
        return [self.one(each.env.task) for each in situations]

    def one(self, task):
        self.tries[task.id] += 1
        code = task.extra["code"] if self.tries[task.id] % 2 else "000"
        return {"name": "open", "arguments": {"code": code}}


def test_an_evaluation_plays_every_task_k_times_and_estimates_pass_at_k(lock_id):
    found = rollout.evaluate(lock_id, HalfRight(), k=4, batch=3)
    assert found.episodes == 16
    assert found.accuracy == 0.5
    values = {j: each.value for j, each in found.pass_at_k.items()}
    assert values == {1: 0.5, 2: pytest.approx(5 / 6), 3: 1.0, 4: 1.0}
    assert found.summary()["pass_at_k"]["1"] == 0.5
    assert found.validity == 1.0
    assert found.summary()["pass_at_k_intervals"]["1"] == list(found.interval)
    assert repr(found).startswith("<Evaluation toy/Lock-v0: accuracy 0.500 [")
    assert repr(found.records[0]).startswith("<EpisodeRecord lock-")
    assert found.interval == astuple(mean_over_tasks([0.5] * 4, [4] * 4))[1:]


def test_a_fault_during_an_episode_leaves_one_record_unscored_and_the_rest_goes_on(lock_id):
    script = [{"name": "peek", "arguments": {"dial": 9}}]
    found = rollout.evaluate(lock_id, policies.ScriptedPolicy(script))
    assert found.episodes == 4
    summary = found.summary()
    assert summary["unscored"] == 4
    assert summary["accuracy"] is None
    assert math.isnan(found.mean_score)
    line = json.loads(json.dumps(found.records[0].to_json(), allow_nan=False))
    assert (line["score"], line["scored"]) == (None, False)
    assert EpisodeRecord.from_json(line) == found.records[0]


def test_wrong_use_says_what_to_do(lock_id):
    with pytest.raises(ConfigurationError, match="at least 1"):
        rollout.evaluate(lock_id, policies.ExpertPolicy(), k=0)
    with pytest.raises(ConfigurationError, match="there is no environment 'toy/Lokc-v0'"):
        rollout.play("toy/Lokc-v0", policies.ExpertPolicy())
    with pytest.raises(ConfigurationError, match="toy/Lock-v0 has no argument 'colour'"):
        rollout.play(lock_id, policies.ExpertPolicy(), colour="red")


@given(n=st.integers(1, 40), data=st.data())
def test_pass_at_one_is_the_share_of_right_tries_and_more_tries_never_hurt(n, data):
    correct = data.draw(st.integers(0, n))
    estimates = [pass_at(n, correct, k) for k in range(1, n + 1)]
    assert estimates[0] == pytest.approx(correct / n)
    assert estimates == sorted(estimates)


# The Python way -----------------------------------------------------------------------------------


def test_a_function_of_the_observation_is_a_policy(lock_id):
    seen = []

    def opens(observation):
        seen.append(observation)
        return {"name": "open", "arguments": {"code": "000"}}

    played = evaluate(lock_id, opens, n=2)
    assert played.episodes == len(seen) == 2
    assert "Open the lock" in seen[0] or seen[0]
    assert policies.as_policy(opens).name == "opens"
    with pytest.raises(ConfigurationError, match="is not a policy: pass a function"):
        evaluate(lock_id, HalfRight)


def test_a_policy_may_be_named_and_an_environment_be_made_already(lock_id):
    env = gym.make(lock_id)
    made, named = evaluate(env, "expert", k=2), evaluate(lock_id, policies.ExpertPolicy(), k=2)
    assert [record.to_json() for record in made] == [record.to_json() for record in named]
    with pytest.raises(ConfigurationError, match="'step_limit' is an argument for creating"):
        evaluate(env, "expert", step_limit=5)
    with pytest.raises(ConfigurationError, match="has no tools"):
        evaluate(gym.make("CartPole-v1"), "expert")


def test_a_class_or_a_function_makes_the_environments_of_a_batch(lock_env):
    made = []

    def make(**options):
        made.append(lock_env(**options))
        return made[-1]

    class OpenLock(type(lock_env())):
        """A lock that needs no arguments."""

        def __init__(self):
            super().__init__(lock_env().tasks)

    assert evaluate(make, "expert", batch=3, step_limit=12).accuracy == 1.0
    assert [env.step_limit for env in made] == [12, 12, 12]
    played = evaluate(OpenLock, "expert", k=2)
    assert (played.records[0].env_id, played.episodes) == ("OpenLock", 8)
    assert rollout.play(OpenLock, "expert").correct
    with pytest.raises(ConfigurationError, match=r"can be created from .*LockEnv.*: .* 'tasks'"):
        evaluate(type(lock_env()), "expert")
    with pytest.raises(ConfigurationError, match=r"can be created from 3: .* Pass an"):
        evaluate(3, "expert")


def test_a_time_limit_around_an_environment_ends_its_episodes_unanswered(lock_env):
    limited = gym.wrappers.TimeLimit(lock_env(), max_episode_steps=3)
    record = rollout.play(limited, "expert", seed=0)
    assert len(record.turns) == 3
    assert (record.answered, record.scored, record.correct) == (False, True, False)
    assert record.reward_parts["unanswered"] < 0
    assert {len(each.turns) for each in evaluate(limited, "expert", k=2)} == {3}


def test_actions_and_observations_pass_through_the_wrappers(lock_env):
    class Louder(gym.ObservationWrapper):
        def observation(self, observation):
            return observation.upper()

    class Unlocking(gym.ActionWrapper):
        def action(self, action):
            return action.replace("unlock", "open")

    seen = []

    def policy(observation):
        seen.append(observation)
        return "peek(dial=1)" if len(seen) == 1 else 'unlock(code="000")'

    plain = lock_env()
    record = rollout.play(Unlocking(Louder(plain)), policy, seed=0)

    assert seen[1].startswith("DIAL 1 BELONGS AT")
    assert record.turns[0]["observation"] == seen[1]
    assert record.turns[1]["action"] == 'open(code="000")'
    assert messages.episode_messages(plain)[3]["content"] == seen[1]


def test_if_every_task_is_refused_the_first_reasons_are_told(lock_env):
    env = lock_env()
    refused = {task_id: TaskRefused(task_id, "rusty", "it is rusty.") for task_id in env.tasks.ids}
    env.tasks = TaskSet(list(env.tasks), name="locks", refused=refused)
    told = r"no task of locks is playable: 4 rusty\.\n  lock-407: it is rusty\.\n(.|\n)* 1 more"
    with pytest.raises(ConfigurationError, match=told):
        evaluate(env, "expert")


def test_rows_and_figures_are_flat_and_a_fault_leaves_no_figure_but_that_it_happened(lock_id):
    fair = evaluate(lock_id, HalfRight(), k=2)
    rows = fair.rows()
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert not any(isinstance(value, dict) for row in rows for value in row.values())
    assert [row["correct"] for row in rows[:2]] == [True, False]
    assert json.loads(json.dumps(rows)) == rows

    script = [{"name": "peek", "arguments": {"dial": 9}}]
    unscored = evaluate(lock_id, policies.ScriptedPolicy(script)).records[0].figures()
    figures = fair.records[0].figures()
    assert (figures["correct"], figures["score"]) == (1.0, fair.records[0].score)
    assert tuple(unscored) == tuple(figures) == FIGURES
    assert unscored.pop("scored") == 0.0
    assert all(math.isnan(value) for value in unscored.values())


def test_episodes_are_read_back_as_they_were(lock_id, tmp_path):
    played = evaluate(lock_id, HalfRight(), k=2)
    file = tmp_path / "played.jsonl"
    file.write_text("".join(json.dumps(record.to_json()) + "\n" for record in played))
    assert read_episodes(file) == list(played)
    whole = file.read_text()
    for written in ('"turns": [', '"calls": [', '"reward_parts": {', '"valid": ', '"task_id": '):
        file.write_text(whole.replace(written, f'{written[:-1]}null, "was": {written[-1]}', 1))
        with pytest.raises(ConfigurationError, match=r"Line 1 of .*played\.jsonl is damaged"):
            read_episodes(file)
    file.write_text(whole)
    with pytest.raises(ConfigurationError, match="has no phases"):
        read_episodes(file, "after")
    with pytest.raises(ConfigurationError, match="There is no"):
        read_episodes(tmp_path / "nowhere")
    file.write_text(file.read_text()[:-20])
    with pytest.warns(UserWarning, match=r"played\.jsonl was cut off and is omitted"):
        assert read_episodes(file) == list(played)[:-1]


def test_the_usage_of_the_models_of_an_environment_is_totalled(lock_env, lock_id, tmp_path):
    def asking(price):
        def make():
            env = lock_env()
            begin = env.begin

            def begin_and_ask(task):
                env.episode.use_models(2, 100, 10, dollars=price)
                env.episode.use_models(1, 50, 5, dollars=price)
                return begin(task)

            env.begin = begin_and_ask
            return env

        return make

    totals = {"episodes": 4, "calls": 12, "tokens_in": 600, "tokens_out": 60, "dollars": 2.0}
    file = tmp_path / "played.jsonl"
    found = rollout.evaluate(asking(0.25), "expert")
    file.write_text("".join(json.dumps(each.to_json()) + "\n" for each in found))
    free = rollout.evaluate(lock_id, "expert")

    assert found.summary()["env_usage"] == found.env_usage == totals
    assert usage_text(totals) == "3.0 calls and 165 tokens per episode, $2.0000 in total"
    assert found.records[0].row()["env_calls"] == 3
    assert Evaluation(tuple(read_episodes(file))).env_usage == totals
    assert rollout.evaluate(asking(None), "expert").env_usage == {**totals, "dollars": None}
    assert "env_usage" not in free.summary() | free.records[0].to_json()


@pytest.mark.parametrize("usage", [{}, {"episodes": 0}, dict.fromkeys(("episodes", "calls"), "x")])
def test_a_usage_with_unexpected_values_has_no_text(usage):
    assert usage_text({"tokens_in": 1, "tokens_out": [], "dollars": "?", **usage}) == ""


def test_every_info_can_be_written_as_json(lock_id):
    env = gym.make(lock_id)
    _, info = env.reset(seed=0)
    infos = [info]
    for action in ("open(code=1)", "no call", '{"name": "opn", "arguments": {"code": null}}', 7):
        infos.append(env.step(action)[4])
        if env.unwrapped.episode.over:
            env.reset(seed=0)
    for info in infos:
        plain = info_to_json(info)
        assert json.loads(json.dumps(plain)) == plain
        assert plain.keys() == info.keys()
        assert (plain["error"] is None) == (info["error"] is None)


def test_a_fault_of_a_wrapper_leaves_the_episode_unscored(lock_env):
    class Remote(gym.Wrapper):
        def step(self, action):
            raise EnvironmentFault("The server of the wrapper is gone.")

    record = rollout.play(Remote(lock_env()), "expert", seed=0)
    assert (record.scored, record.fault) == (False, "The server of the wrapper is gone.")


def test_the_answer_of_a_wrapper_does_not_replace_that_of_an_earlier_turn(lock_env):
    class Polite(gym.Wrapper):
        def step(self, action):
            if action == "please":
                return "You are welcome.", 0.0, False, False, {}
            return self.env.step(action)

    said = iter(["peek(dial=1)", "please", 'open(code="000")'])
    record = rollout.play(Polite(lock_env()), lambda _: next(said), seed=0)
    first, last = record.turns
    assert first["observation"].startswith("dial 1 belongs at")
    assert last["action"] == 'open(code="000")'


def test_a_function_that_makes_one_environment_only_is_refused(lock_env):
    env = lock_env()
    with pytest.raises(ConfigurationError, match="returned the same environment twice"):
        evaluate(lambda: gym.wrappers.TimeLimit(env, 9), "expert")


def test_the_map_of_a_pool_of_threads_plays_what_one_thread_plays(lock_env):
    def make():
        env = lock_env()
        env.begin = lambda task: time.sleep(0.002) or type(env).begin(env, task)
        return env

    with ThreadPoolExecutor(4) as pool:
        many = evaluate(make, "expert", k=4, batch=2, map=pool.map)
    assert many == evaluate(lock_env, "expert", k=4)


def test_chosen_tasks_are_divided_into_shards(lock_id):
    ids = ["lock-953", "lock-112", "lock-407"]
    parts = [evaluate(lock_id, "expert", task_ids=ids, shard=(i, 2)) for i in (1, 2)]
    assert [[record.task_id for record in part] for part in parts] == [ids[:1], ids[1:]]


def test_a_policy_that_leaves_an_action_out_ends_the_evaluation(lock_env):
    class Short(policies.ExpertPolicy):
        def act(self, situations):
            return super().act(situations)[1:]

    for waits in (False, True):
        make = type("Lock", (type(lock_env()),), {"waits": waits})
        with pytest.raises(ValueError, match="shorter"):
            evaluate(lambda make=make: make(lock_env().tasks), Short())


def test_any_text_may_be_the_id_of_a_task(lock_env):
    env = lock_env()
    env.tasks = TaskSet([replace(env.tasks[0], id="\ud800")])
    assert evaluate(env, "expert").accuracy == 1.0
