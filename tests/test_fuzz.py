"""Random and mutated actions: nothing raises, and wrong never beats right."""

import itertools
import random

import pytest

from sqlgym.tasks.gold import gold_of
from tests.fuzzing import random_actions
from toolgym import registration

ENVS = {"sqlgym/Explore-v0": {}, "sqlgym/TextToSQL-v0": {"match": "sound"}}


def right_answer(env):
    if "sql" in env.tools["answer"].arguments.model_fields:
        return {"name": "answer", "arguments": {"sql": env.task.gold_sql}}
    rows = gold_of(env.task).result.rows
    return {"name": "answer", "arguments": {"value": [list(row) for row in rows]}}


def play_noise(env_id: str, count: int, seed: int) -> tuple[list[float], list[float]]:
    """Scores of correct and of other episodes; one action in a hundred is the right answer."""
    env = registration.make(env_id, dataset="tiny", **ENVS[env_id])
    low, high = env.reward_config.bounds
    luck = random.Random(seed)
    scores: dict[bool, list[float]] = {True: [], False: []}
    episodes = itertools.count()
    over, total, info = True, 0.0, {}
    for action in random_actions(seed, count, env.tools):
        if over:
            env.reset(seed=next(episodes))
            total = 0.0
        given = right_answer(env) if luck.random() < 0.01 else action
        observation, reward, terminated, truncated, info = env.step(given)
        total += reward
        over = terminated or truncated
        assert isinstance(observation, str)
        assert low <= info["score"] <= high
        assert total == pytest.approx(info["score"], abs=1e-9)
        if over:
            for _ in range(luck.choice((0, 0, 3))):  # and some go on after the end
                env.step(action)
            assert low <= env.finish() <= high
            scores[env.episode.ledger.correct].append(env.finish())
    return scores[True], scores[False]


@pytest.mark.parametrize("env_id", ENVS)
@pytest.mark.parametrize("n", [600, pytest.param(30_000, marks=pytest.mark.nightly)])
def test_random_actions_raise_nothing_and_wrong_never_beats_right(env_id, n):
    right, wrong = play_noise(env_id, n, seed=1)
    assert min(right) >= max(wrong) + 0.3
