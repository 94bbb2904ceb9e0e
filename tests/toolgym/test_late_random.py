"""The generator of a seed is made late, and is the one that Gymnasium makes."""

import copy

import gymnasium as gym
import pytest
from gymnasium.utils import seeding

from toolgym.env import LateRandomEnv


class Late(LateRandomEnv):
    observation_space = action_space = gym.spaces.Discrete(2)


class Usual(gym.Env):
    observation_space = action_space = gym.spaces.Discrete(2)


@pytest.mark.parametrize("asked_between", [False, True])
def test_it_draws_what_gymnasium_draws(asked_between):
    late, usual = Late(), Usual()
    for seed in (0, 7, None, 7, 2**70):
        late.reset(seed=seed)
        usual.reset(seed=seed)
        if seed == 0 and not asked_between:
            continue
        assert late.np_random.random() == usual.np_random.random()
        assert late.np_random_seed == usual.np_random_seed == (7 if seed is None else seed)


def test_no_generator_is_made_before_it_is_asked_for():
    env = Late()
    env.reset(seed=2)
    assert vars(env)["_np_generator"] is None
    assert env.np_random is env.np_random
    assert vars(env)["_np_generator"] is not None


def test_a_generator_that_was_set_stays():
    env = Late()
    env.np_random = generator = seeding.np_random(3)[0]
    env.reset()
    assert env.np_random is generator
    assert env.np_random_seed == -1


def test_an_environment_that_was_never_seeded_has_a_generator_and_its_seed():
    env = Late()
    seed = env.np_random_seed
    assert env.np_random.random() == seeding.np_random(seed)[0].random()


def test_a_copy_draws_on_as_the_original_does():
    env = Late()
    env.reset(seed=5)
    other = copy.deepcopy(env)
    assert env.np_random.random() == other.np_random.random()


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_seed_that_gymnasium_refuses_is_refused(seed):
    with pytest.raises(gym.error.Error, match="Seed must be"):
        Late().reset(seed=seed)
