"""Checkpoints: folders written atomically, from which a run resumes to the bit.

    checkpoint-N/            a model folder (`from_pretrained` reads it), or an adapter's; beside it
      optimizer.safetensors  moments, and what float32 weights have beyond those of the model
      random.pt              random states
      trainer_state.json     step, updates, drawn tasks, guards; written last

A checkpoint is written under another name and renamed when it is complete, so a process that is
killed at any moment leaves the one before it. Sampling is seeded by names
(`generation`), so no generator's position has to be kept for rollouts; PyTorch's global ones are,
for models that draw by themselves.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.low_rank import Adapter
from adapters.training.models.stored_weights import read_weights
from toolgym.errors import ConfigurationError

_STATE, _TENSORS, _RANDOM = "trainer_state.json", "optimizer.safetensors", "random.pt"


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: Their folder; it need not exist yet.
        keep: The number of checkpoints to keep.
        on_save: Called with the folder of each checkpoint before it is complete, to add files.
    """

    def __init__(
        self, folder: Path, keep: int, on_save: Callable[[Path], None] | None = None
    ) -> None:
        self._folder, self._keep, self._on_save = folder, keep, on_save

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        suffixes = (
            path.name.removeprefix("checkpoint-") for path in self._folder.glob("checkpoint-*")
        )
        complete = [n for n in suffixes if n.isdigit() and (self._place(int(n)) / _STATE).is_file()]
        return sorted(map(int, complete))

    def save(
        self,
        step: int,
        model: PreTrainedModel | Adapter,
        tokenizer: PreTrainedTokenizerBase,
        tensors: Mapping[str, Tensor],
        state: Mapping[str, Any],
        sound: Collection[int] = (),
    ) -> None:
        """Write a checkpoint, and remove the oldest ones beyond `keep`.

        Args:
            model: What is trained: all of a model, or its adapter.
            tensors: Of the optimizer.
            state: State that JSON can hold.
            sound: Steps whose weights are worth returning to; the latest checkpoint among them
                stays, however many came after it.
        """
        place = self._place(step)
        temporary = place.with_name(f".{place.name}.new")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        save_file(dict(tensors), temporary / _TENSORS)
        torch.save(_random_states(), temporary / _RANDOM)
        if self._on_save is not None:
            self._on_save(temporary)
        (temporary / _STATE).write_text(json.dumps({"global_step": step, **state}))
        shutil.rmtree(place, ignore_errors=True)
        temporary.rename(place)
        steps = self.steps()
        retained = {*steps[-self._keep :], max(set(steps) & set(sound), default=step)}
        for old in set(steps) - retained:
            shutil.rmtree(self._place(old))

    def load_weights(self, step: int, model: PreTrainedModel | Adapter) -> Mapping[str, Tensor]:
        """Put the weights of a checkpoint into the model, and return the optimizer's tensors.

        Raises:
            ConfigurationError: They are those of another model.
        """
        place = self._place(step)
        if isinstance(model, Adapter):
            model.load(place)
        else:
            try:
                read_weights(model, place)
            except RuntimeError as problem:
                raise ConfigurationError(
                    f"{place} holds another model than the one that is trained: go on with that"
                    " one, or train into another folder."
                ) from problem
        return load_file(place / _TENSORS)

    def load_random(self, step: int) -> None:
        """Set PyTorch's global generators as they were when a checkpoint was written."""
        states = torch.load(self._place(step) / _RANDOM, map_location="cpu")
        torch.set_rng_state(states["cpu"].cpu())
        if states["cuda"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([state.cpu() for state in states["cuda"]])

    def load_state(self, step: int) -> dict[str, Any]:
        """The state without tensors.

        Raises:
            ConfigurationError: It is not readable as what `save` wrote.
        """
        file = self._place(step) / _STATE
        try:
            state: dict[str, Any] = json.loads(file.read_text())
        except (OSError, json.JSONDecodeError) as problem:
            raise ConfigurationError(
                f"{file} cannot be read ({problem}): remove its folder to go on from an older one."
            ) from problem
        return state

    def _place(self, step: int) -> Path:
        return self._folder / f"checkpoint-{step}"


def _random_states() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}
