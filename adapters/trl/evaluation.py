"""Evaluation in TRL's trainer on another split, in environments of its own.

TRL has one pool of environments, and plays the rows of `eval_dataset` in those that it trains in,
which have the tasks of their own split only. So while it evaluates, another pool takes their place,
made by a class of its own: other arguments (a split, a way of judging), other counts of faults.

What an evaluation samples it draws from PyTorch's global random numbers, as training does. So they
are set to the seed while it lasts, and set back after it: every evaluation draws the same, and the
training is the same as without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from adapters.trl.environment import RolloutEnvironment
from toolgym.errors import ConfigurationError

Environment = type[RolloutEnvironment]
_HELD = ("environment_factories", "_environment_pool", "_env_tools")


class EvaluationPool:
    """The environments that a trainer evaluates in.

    Args:
        training: The class that it trains in.
        evaluation: The class of the evaluation; None: the same.

    Raises:
        ConfigurationError: The two do not offer the same tools, or do not read calls alike.
    """

    def __init__(self, training: Environment, evaluation: Environment | None) -> None:
        self.environment = evaluation or training
        self._is_own = self.environment is not training
        if not self._is_own:
            return
        one, other = training._sample(), self.environment._sample()
        if list(one.tools) != list(other.tools) or one.parsing != other.parsing:
            raise ConfigurationError(
                f"the evaluation offers {', '.join(other.tools)} ({other.parsing} parsing), and the"
                f" training {', '.join(one.tools)} ({one.parsing}): make both environments with the"
                " same tools and parsing, or measure with `toolgym eval`."
            )
        first = self.environment()
        schemas = first._playing.tool_schemas()
        self._values = [{None: self.environment}, {None: [first]}, {None: schemas}]

    def score_all(self, trainer: Any) -> None:
        """Have the reward of the environment read from those of the evaluation too.

        TRL asks those of the training's class alone.
        """
        names: list[str] = trainer.reward_func_names
        name = type(trainer._environment_pool[None][0]).__name__
        trainer.reward_funcs[names.index(name)] = _rewards

    @contextmanager
    def in_place(self, trainer: Any) -> Iterator[None]:
        """A context in which the trainer plays in these environments."""
        if not self._is_own:
            yield
            return
        own = [getattr(trainer, name) for name in _HELD]
        self._put(trainer, self._values)
        try:
            yield
        finally:
            self._put(trainer, own)

    @staticmethod
    def _put(trainer: Any, values: Sequence[Any]) -> None:
        for name, value in zip(_HELD, values, strict=True):
            setattr(trainer, name, value)


def _rewards(environments: Sequence[RolloutEnvironment], **columns: Any) -> list[float | None]:
    return [environment.get_reward() for environment in environments]


@contextmanager
def own_random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """A context with random numbers of the seed; PyTorch's global ones go on after it."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
