"""Policies that do not try to answer earn little, and nothing by length, silence or a leak.

They are those of `benchmarks/sql_policies.py`, which prints the whole table.
"""

import random
from itertools import pairwise

import pytest

from benchmarks.sql_policies import PLAYS, answer, call, play_once, report, scores_of
from sqlgym.judging.answers import GoldAnswer, matches
from sqlgym.tasks.gold import gold_of
from tests.sweeps import sweep
from toolgym import registration

ENVS = ["sqlgym/Explore-v0", "sqlgym/TextToSQL-v0"]
LUCKY = 0.05
"""Share of tasks that may be right by luck: counts that are 3, tables with one row."""


@pytest.fixture(params=ENVS)
def env_id(request):
    return request.param


@pytest.mark.parametrize("split", sweep(["train", "dev"], ["dev"]))
@pytest.mark.parametrize("name", [*PLAYS, "random"])
def test_no_wrong_episode_scores_above_the_bound(spider, env_id, name, split):
    weights = registration.make(env_id, dataset=spider, split=split).reward_config
    episodes = list(scores_of(env_id, name, 1, dataset=spider, split=split))
    wrong = [score for _, score, right, _ in episodes if not right]
    right = [score for _, score, right, _ in episodes if right]

    assert len(episodes) > 100
    assert max(wrong) <= weights.partial
    assert min(right, default=1.0) >= 1 - weights.cost_cap >= max(wrong) + weights.margin
    assert len(right) <= LUCKY * len(episodes)


@pytest.mark.parametrize("name", ["repeat_forever", "constant_query", "say_nothing", "gold_leak"])
def test_no_policy_earns_more_by_playing_longer(spider, env_id, name):
    """With a longer budget the score of no task rises, but by what the policy found on its way."""
    played = [
        {
            task_id: (score, right, progress)
            for task_id, score, right, progress in scores_of(
                env_id, name, 1, n=25, dataset=spider, split="dev", step_limit=limit
            )
        }
        for limit in (9, 15, 60)
    ]
    for short, long in pairwise(played):
        for task_id, (score, *outcome) in short.items():
            if list(long[task_id][1:]) == outcome:
                answered_now = 0.05 if name == "gold_leak" else 0.0  # it had no call left for it
                assert long[task_id][0] <= score + answered_now + 1e-9


def test_a_repeated_query_costs_more_each_time(spider, env_id):
    env = registration.make(env_id, dataset=spider, split="dev", step_limit=500)
    observation, _ = env.reset(seed=0)
    play = PLAYS["repeat_forever"](env, observation)
    next(play)
    rewards = [env.step(play.send(""))[1] for _ in range(450)]

    # The first query may find something; the cost saturates, and rounds to nothing in the end.
    assert max(rewards[1:]) <= 0.0
    assert max(rewards[1:60]) < 0.0


@pytest.mark.parametrize("name", [*PLAYS, "random"])
def test_a_wrong_answer_is_worth_more_than_none(spider, env_id, name):
    """Whatever was played before, whoever then answers anything has gained `unanswered`."""
    env = registration.make(env_id, dataset=spider, split="dev")
    for task_id in env.tasks.first_playable(10).ids:
        actions = recorded(env, name, task_id)
        ends = {}
        for answers in (True, False):
            env.reset(options={"task_id": task_id})
            for action in actions[: env.step_limit - 1]:
                env.step(action)
            if answers:
                env.step(answer(env, "no idea", "SELECT 'no idea'"))
            ends[answers] = env.finish()
        assert ends[True] == pytest.approx(ends[False] + 0.05)


def recorded(env, name, task_id):
    """What a policy does in an episode, without its answer."""
    draw = random.Random(task_id)
    observation, _ = env.reset(options={"task_id": task_id})
    if name == "random":
        words = observation.split()
        return [call("query", sql=f"SELECT * FROM {draw.choice(words)}") for _ in range(9)]
    play_once(env, PLAYS[name](env, observation), observation)
    return [turn.action for turn in env.episode.turns if not answered(turn)]


def answered(turn):
    return any(made.name == "answer" and made.error is None for made in turn.calls)


def test_nothing_that_an_agent_can_provoke_tells_the_gold(spider, env_id):
    """Errors, hints and the prompt never hold the gold SQL, nor a value that is the answer."""
    env = registration.make(env_id, dataset=spider, split="dev")
    for task_id in env.tasks.first_playable(60).ids:
        observation, info = env.reset(options={"task_id": task_id})
        gold = gold_of(env.task)
        seen = play_once(env, PLAYS["gold_leak"](env, observation), observation)
        told = "\n".join([*seen, str(info)])
        assert env.task.gold_sql not in told
        # What a query showed is the database's to tell; what an error says is not.
        for text in [observation, *(text for text in seen if text.startswith("error["))]:
            assert not any(right_in(line, gold.answer) for line in text.splitlines()), text


def right_in(line: str, gold: GoldAnswer) -> bool:
    return matches(gold, line).equal


@pytest.mark.nightly
def test_the_table_of_policies_is_printed(spider, env_id):
    lines = list(report(env_id, 8, dataset=spider, split="dev"))
    print("\n".join(lines))

    shares = {line.split()[0]: line.split() for line in lines[2:]}
    assert set(PLAYS) < set(shares)
    # Progress tells apart members of groups that are all wrong.
    assert float(shares["sloppy"][4].rstrip("%")) < float(shares["sloppy"][3].rstrip("%"))
