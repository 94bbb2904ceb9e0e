"""The generator of a seed is made late, and is the one that Gymnasium makes."""

import gymnasium as gym
import pytest

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


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_seed_that_gymnasium_refuses_is_refused(seed):
    with pytest.raises(gym.error.Error, match="Seed must be"):
        Late().reset(seed=seed)
