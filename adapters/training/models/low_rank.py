"""LoRA adapters, which add PEFT layers to a model in place.

Only the weights of the adapter are trained, always in float32. The other weights are frozen and
have neither gradients nor optimizer state. The model without its adapter serves as the KL
reference, which requires no additional memory. `Adapter.merged` temporarily adds the adapter to the
weights for rollouts. `Adapter.merge` adds the adapter permanently and removes the PEFT layers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from toolgym.errors import ConfigurationError

_WEIGHTS = "adapter_model.safetensors"


def lora_config(rank: int, alpha: int, targets: str | Sequence[str]) -> Any:
    """Return the PEFT `LoraConfig` for an adapter.

    Raises:
        ConfigurationError: If peft is not installed.
    """
    try:
        from peft import LoraConfig
    except ImportError:
        raise ConfigurationError(
            "--lora needs peft, which is not installed. Run: pip install 'toolgym[train]'"
        ) from None
    return LoraConfig(
        r=rank,
        lora_alpha=alpha,
        target_modules=targets if isinstance(targets, str) else list(targets),
        task_type="CAUSAL_LM",
    )


class Adapter:
    """A new LoRA adapter for a model. The initial output of the adapter is zero.

    Args:
        model: The model that gets the layers of the adapter. The model's own weights are frozen.
        config: The `LoraConfig` of peft.
        seed: Seed of the initial weights of the adapter.

    Raises:
        ConfigurationError: If the model does not have the layers that the config names.
    """

    def __init__(self, model: PreTrainedModel, config: Any, seed: int = 0) -> None:
        from peft import get_peft_model

        with torch.random.fork_rng(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # warnings of peft about future names
            torch.manual_seed(seed)
            try:
                self._inside: Any = get_peft_model(model, config)
            except ValueError as problem:
                raise ConfigurationError(f"--lora-targets is refused: {problem}") from problem
        self.model = model

    @contextmanager
    def disabled(self) -> Iterator[PreTrainedModel]:
        """Return a context manager under which the model computes without the adapter."""
        with self._inside.disable_adapter():
            yield self.model

    @contextmanager
    def merged(self) -> Iterator[PreTrainedModel]:
        """Return a context manager that adds the adapter to the weights, for faster rollouts.

        The weights are changed in place, so CUDA graphs stay valid. The original weights are
        restored exactly afterwards. The adapter and the gradients do not change. The context
        manager keeps a copy of the weights that it changes.
        """
        from peft.tuners.tuners_utils import BaseTunerLayer

        layers = [module for module in self.model.modules() if isinstance(module, BaseTunerLayer)]
        originals = {
            weight: weight.detach().clone()
            for layer in layers
            for weight in layer.get_base_layer().parameters()
        }
        try:
            with torch.no_grad():
                for layer in layers:
                    layer.merge()
            yield self.model
        finally:
            for layer in layers:
                layer.merged_adapters.clear()
            for weight, original in originals.items():
                weight.data.copy_(original)

    def save_pretrained(self, folder: Path) -> None:
        """Write the adapter into a folder, without the model."""
        self._inside.save_pretrained(str(folder), save_embedding_layers=False)

    def load(self, folder: Path) -> None:
        """Read the adapter's weights from a folder.

        Raises:
            ConfigurationError: If the folder has no adapter of the same shape.
        """
        from peft import set_peft_model_state_dict
        from safetensors.torch import load_file

        file = folder / _WEIGHTS
        try:
            found: Any = set_peft_model_state_dict(self._inside, load_file(file))
            if found.unexpected_keys:
                raise RuntimeError(f"unexpected: {found.unexpected_keys[0]}")
        except (OSError, RuntimeError) as problem:
            raise ConfigurationError(
                f"{folder} has no adapter of the shape that this run trains. Use the lora settings"
                " of the first run, or another run folder."
            ) from problem

    def remove(self) -> None:
        """Remove the adapter's layers without changing the weights of the model."""
        self._inside.unload()
        self.model.requires_grad_(True)

    def merge(self) -> None:
        """Add the adapter to the model's own weights and remove its layers."""
        self._inside.merge_and_unload()
        self.model.requires_grad_(True)
