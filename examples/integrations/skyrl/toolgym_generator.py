"""SkyRL's generator for toolgym environments (skyrl 0.4.0).

It adds two things: an episode that the token limit cuts off is closed and scored, and a
trajectory with a fault of the machine is excluded from the training.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from toolgym_trajectory import balance, settle

from toolgym.errors import ConfigurationError

READ_FOR: Final = "0.4.0"


def check_version() -> None:
    """Check that skyrl is installed in the supported version.

    Raises:
        ConfigurationError: It is missing, or has another version.
    """
    try:
        installed = version("skyrl")
    except PackageNotFoundError:
        installed = "none"
    if installed != READ_FOR:
        raise ConfigurationError(
            f"toolgym_generator supports skyrl {READ_FOR}; installed: {installed}. Run pip install"
            f" 'skyrl[fsdp]=={READ_FOR}' (Python 3.12 or newer). For another version, compare its"
            " SkyRLGymGenerator with the methods overridden here, and change READ_FOR."
        )


check_version()

from skyrl.train.generators.skyrl_gym_generator import (  # noqa: E402 - after the check of the version
    SkyRLGymGenerator,
)


class ToolgymGenerator(SkyRLGymGenerator):  # type: ignore[misc, unused-ignore]
    """SkyRL's generator with the score of an episode as its reward, and without faults."""

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
                f"generator.{setting} is not supported, because the sampled tokens of all turns of"
                " an episode must be kept. Use the default."
            )

    def _post_process_agent_loop_output(
        self, agent_loop_output: Any, env_extras: dict[str, Any], trajectory_id: Any
    ) -> Any:
        done = super()._post_process_agent_loop_output(agent_loop_output, env_extras, trajectory_id)
        return settle(done)

    async def generate(self, input_batch: Any, disable_tqdm: bool = False) -> Any:
        """Generate a batch in which excluded trajectories do not change the mean of their group."""
        output = await super().generate(input_batch, disable_tqdm)
        ids = input_batch.get("trajectory_ids")
        if ids is not None:
            groups = [each.instance_id for each in ids]
            output["rewards"] = balance(output["rewards"], output["stop_reasons"], groups)
        return output
