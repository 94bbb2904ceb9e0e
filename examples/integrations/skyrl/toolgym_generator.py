"""SkyRL's generator for toolgym environments, read for skyrl 0.4.0.

It is SkyRL's own with two additions: the score of an episode that a limit on tokens cut off
includes what that costs, and a trajectory that met a fault of the machine is left out.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from toolgym_trajectory import balance, settle

from toolgym.errors import ConfigurationError

READ_FOR: Final = "0.4.0"


def check_version() -> None:
    """Make sure that the installed SkyRL is the one whose generator was read.

    Raises:
        ConfigurationError: It is another one, or there is none.
    """
    try:
        installed = version("skyrl")
    except PackageNotFoundError:
        installed = "none"
    if installed != READ_FOR:
        raise ConfigurationError(
            f"toolgym_generator was read for skyrl {READ_FOR}, and {installed} is installed."
            f" Install that one (pip install 'skyrl[fsdp]=={READ_FOR}', Python 3.12 or newer), or"
            " compare SkyRLGymGenerator of yours with what is overridden here, and change READ_FOR."
        )


check_version()

from skyrl.train.generators.skyrl_gym_generator import (  # noqa: E402 - not before it was checked
    SkyRLGymGenerator,
)


class ToolgymGenerator(SkyRLGymGenerator):  # type: ignore[misc, unused-ignore]
    """SkyRL's generator, in which an episode is worth its score and a fault nothing at all."""

    def _validate_cfg(self, generator_cfg: Any) -> None:
        super()._validate_cfg(generator_cfg)
        wrong = {
            "batched=true": generator_cfg.batched,
            "step_wise_trajectories=true": generator_cfg.step_wise_trajectories,
            "use_conversation_multi_turn=false": not generator_cfg.use_conversation_multi_turn,
            "chat_template": self.custom_chat_template is not None,
        }
        for setting in (name for name, is_set in wrong.items() if is_set):
            raise ConfigurationError(
                f"generator.{setting} does not fit: an episode has several turns, which are kept as"
                " the tokens that were sampled. Leave it at its default."
            )

    def _post_process_agent_loop_output(
        self, agent_loop_output: Any, env_extras: dict[str, Any], trajectory_id: Any
    ) -> Any:
        done = super()._post_process_agent_loop_output(agent_loop_output, env_extras, trajectory_id)
        return settle(done)

    async def generate(self, input_batch: Any, disable_tqdm: bool = False) -> Any:
        """Generate a batch, in which what is left out moves no baseline."""
        output = await super().generate(input_batch, disable_tqdm)
        ids = input_batch.get("trajectory_ids")
        if ids is not None:
            groups = [each.instance_id for each in ids]
            output["rewards"] = balance(output["rewards"], output["stop_reasons"], groups)
        return output
