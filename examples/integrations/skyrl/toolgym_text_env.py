"""The environment class `toolgym` for SkyRL-gym: toolgym environments as a `BaseTextEnv`.

`register` registers it with SkyRL-gym. Call it in the process that generates, as `main_toolgym`
does in the Ray task of the trainer. The rows are written by

    toolgym export rows ENV --for skyrl --out rows

The environment reads the columns of a row and replaces its prompt by the system message with the
tools and the question with the budget.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from toolgym_trajectory import Trajectory, mean_metrics

from toolgym.errors import ConfigurationError

READ_FOR: Final = "0.4.0"
ENV_CLASS: Final = "toolgym"


def check_version() -> None:
    """Check that skyrl-gym is installed in the supported version.

    Raises:
        ConfigurationError: It is missing, or has another version.
    """
    try:
        installed = version("skyrl-gym")
    except PackageNotFoundError:
        installed = "none"
    if installed != READ_FOR:
        raise ConfigurationError(
            f"toolgym_text_env supports skyrl-gym {READ_FOR}; installed: {installed}. Run pip"
            f" install 'skyrl-gym=={READ_FOR}'. For another version, compare its BaseTextEnv with"
            " this file, run tests/examples, and change READ_FOR."
        )


check_version()

import skyrl_gym  # noqa: E402 - after the check of the version
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput  # noqa: E402


class ToolgymTextEnv(BaseTextEnv):  # type: ignore[misc, unused-ignore]
    """One episode. SkyRL creates one for each trajectory and calls it from several threads.

    Args:
        env_config: SkyRL's settings of the class; not used.
        extras: The columns of the row, and `max_turns`.
    """

    def __init__(self, env_config: Any = None, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.trajectory = Trajectory(extras or {})

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Return the chat before the first message; after a fault, the prompt of the row."""
        return self.trajectory.begin() or prompt, {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Pass a message of the model to the environment."""
        observation, reward, over = self.trajectory.take(action)
        self.turns = self.trajectory.turns
        return BaseTextEnvStepOutput(
            observations=[] if over else [{"role": "user", "content": observation}],
            reward=reward,
            done=over,
            metadata={},
        )

    def get_metrics(self) -> dict[str, Any]:
        """Close the episode and return its metrics."""
        return self.trajectory.metrics()

    @staticmethod
    def aggregate_metrics(metrics: list[dict[str, Any]]) -> dict[str, Any]:
        """Return means of the metrics; an unscored trajectory counts only in `scored`."""
        return mean_metrics(metrics)

    def close(self) -> None:
        """Close the environment."""
        self.trajectory.close()


def register() -> None:
    """Register the class in this process, if it is not registered."""
    if ENV_CLASS not in skyrl_gym.registry:
        skyrl_gym.register(id=ENV_CLASS, entry_point=ToolgymTextEnv)
