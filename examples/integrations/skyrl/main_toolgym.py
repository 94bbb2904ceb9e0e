"""Train with SkyRL 0.4.0 on toolgym environments.

    python main_toolgym.py data.train_data="['train.parquet']" data.val_data="['dev.parquet']"

Settings are read from `toolgym_grpo.yaml` in this folder, and the command line overrides them.
`--check` validates and prints them without a training.
"""

import sys
from pathlib import Path
from typing import Any, Final

from toolgym_generator import ToolgymGenerator

# That import has checked the version of skyrl.
# isort: split
import ray
from omegaconf import OmegaConf
from skyrl.backends.skyrl_train.inference_servers.utils import (
    resolve_policy_model_name,
)
from skyrl.train.config import SkyRLTrainConfig
from skyrl.train.entrypoints.main_base import BasePPOExp
from skyrl.train.utils import validate_cfg
from skyrl.train.utils.utils import initialize_ray

SETTINGS: Final = Path(__file__).with_name("toolgym_grpo.yaml")


class ToolgymExperiment(BasePPOExp):  # type: ignore[misc, unused-ignore]
    """SkyRL's experiment with `ToolgymGenerator`."""

    def get_generator(self, cfg: Any, tokenizer: Any, inference_engine_client: Any) -> Any:
        """Return the generator."""
        return ToolgymGenerator(
            generator_cfg=cfg.generator,
            skyrl_gym_cfg=cfg.environment.skyrl_gym,
            inference_engine_client=inference_engine_client,
            tokenizer=tokenizer,
            policy_model_name=resolve_policy_model_name(cfg),
        )


@ray.remote(num_cpus=1)  # type: ignore[untyped-decorator, unused-ignore]
def train(cfg: Any) -> None:
    """Train, in a process of Ray in which the environment class must be registered."""
    from toolgym_text_env import register

    register()
    ToolgymExperiment(cfg).run()


def settings(overrides: list[str]) -> Any:
    """Return the settings of the file, overridden by the command line."""
    file = OmegaConf.to_container(OmegaConf.load(SETTINGS))
    return SkyRLTrainConfig.from_cli_overrides(
        [f"{key}={value}" for key, value in flat(file)] + overrides
    )


def flat(tree: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested settings with their dotted names."""
    leaves = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        leaves += flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return leaves


def main(arguments: list[str]) -> None:
    """Validate the settings and train."""
    cfg = settings([each for each in arguments if each != "--check"])
    validate_cfg(cfg)
    if "--check" in arguments:
        print(BasePPOExp.get_cfg_as_str(cfg))
        return
    initialize_ray(cfg)
    ray.get(train.remote(cfg))


if __name__ == "__main__":
    main(sys.argv[1:])
