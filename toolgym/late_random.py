"""A Gymnasium environment whose random generator is made when somebody asks for it.

`reset(seed=)` has to seed `np_random`, and to make a generator of NumPy's takes as long as many a
step does. A tool environment chooses its task by a hash and hardly ever draws, so `reset` takes
note of the seed only. Whoever asks gets the generator that Gymnasium would have made.
"""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")


class LateRandomEnv(gym.Env[ObsType, ActType]):
    """`gymnasium.Env` in all but the time at which `np_random` is made."""

    _np_generator: np.random.Generator | None = None

    @property
    def _np_random(self) -> np.random.Generator | None:
        """What Gymnasium keeps the generator in, and its checker looks at."""
        if self._np_generator is None and self._np_random_seed is not None:
            self._np_generator, _ = seeding.np_random(self._np_random_seed)
        return self._np_generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._np_generator = generator

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Seed the generator, as `gymnasium.Env.reset` does.

        Raises:
            gymnasium.error.Error: The seed is no integer of at least 0.
        """
        if isinstance(seed, int) and seed >= 0:
            self._np_generator, self._np_random_seed = None, seed
        else:
            super().reset(seed=seed)
