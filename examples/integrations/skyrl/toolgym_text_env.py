"""The environment class `toolgym` for SkyRL-gym: toolgym environments as a `BaseTextEnv`.

`register` makes it known to SkyRL-gym. It has to be called in the process that generates, which is
the Ray task of the trainer: `main_toolgym` does so. Rows come from

    toolgym export rows ENV --for skyrl --out rows

SkyRL hands each of their columns to the environment but for the prompt, which the environment
writes anew: the system message with the tools, then the question with the budget.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from toolgym_trajectory import Trajectory, mean_metrics

from toolgym.errors import ConfigurationError

READ_FOR: Final = "0.4.0"
ENV_CLASS: Final = "toolgym"


def check_version() -> None:
    """Make sure that the installed SkyRL-gym is the one that was read.

    Raises:
        ConfigurationError: It is another one, or there is none.
    """
    try:
        installed = version("skyrl-gym")
    except PackageNotFoundError:
        installed = "none"
    if installed != READ_FOR:
        raise ConfigurationError(
            f"toolgym_text_env was read for skyrl-gym {READ_FOR}, and {installed} is installed."
            f" Install that one (pip install 'skyrl-gym=={READ_FOR}'), or compare BaseTextEnv of"
            " yours with what is used here, run the tests in tests/examples with it, and change"
            " READ_FOR."
        )


check_version()

import skyrl_gym  # noqa: E402 - not before it was checked
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput  # noqa: E402


class ToolgymTextEnv(BaseTextEnv):  # type: ignore[misc, unused-ignore]
    """One episode; SkyRL makes one for each trajectory, and calls it from changing threads.

    Args:
        env_config: SkyRL's settings of the class; there are none.
        extras: The columns of the row, and `max_turns`.
    """

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.trajectory = Trajectory(extras or {})

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """The chat before the first message; the bare prompt of the row after a fault."""
        return self.trajectory.begin() or prompt, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Give the environment what the model wrote, as it is."""
        observation, reward, over = self.trajectory.take(action)
        self.turns = self.trajectory.turns
        return BaseTextEnvStepOutput(
            observations=[] if over else [{"role": "user", "content": observation}],
            reward=reward,
            done=over,
            metadata={},
        )

    def get_metrics(self) -> dict[str, Any]:
        """The figures of the episode, which is closed by this."""
        return self.trajectory.metrics()

    @staticmethod
    def aggregate_metrics(metrics: list[dict[str, Any]]) -> dict[str, Any]:
        """Means; one that a fault left out counts in `scored` only."""
        return mean_metrics(metrics)

    def close(self) -> None:
        """Close the environment."""
        self.trajectory.close()


def register() -> None:
    """Make the class known in this process, once."""
    if ENV_CLASS not in skyrl_gym.registry:
        skyrl_gym.register(id=ENV_CLASS, entry_point=ToolgymTextEnv)
