"""Checkpoints: folders written atomically, from which a run resumes to the bit.

    checkpoint-N/            a model folder (`from_pretrained` reads it), or an adapter's; beside it
      optimizer.safetensors  moments, and what float32 weights have beyond those of the model
      random.pt              random states
      trainer_state.json     step, updates, drawn tasks, guards; written last

A checkpoint is written under another name and renamed when it is complete, so a process that is
killed at any moment leaves the one before it. It is read tensor by tensor into the memory that the
model and its optimizer have, so going back takes no more than going on. Sampling is seeded by names
(`generation`), so no generator's position has to be kept for rollouts; PyTorch's global ones are,
for models that draw by themselves.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.exact_weights import divide
from adapters.training.models.low_rank import Adapter
from adapters.training.models.stored_weights import TensorFile, read_weights, write_tensors
from toolgym.errors import ConfigurationError

_STATE, _TENSORS, _RANDOM = "trainer_state.json", "optimizer.safetensors", "random.pt"
_OLD_TENSORS = "optimizer.pt"  # of versions up to 0.1


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: Their folder; it need not exist yet.
        keep: The number of checkpoints to keep.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder, self._keep = folder, keep

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
        write_tensors(tensors, temporary / _TENSORS)
        torch.save(_random_states(), temporary / _RANDOM)
        (temporary / _STATE).write_text(json.dumps({"global_step": step, **state}))
        shutil.rmtree(place, ignore_errors=True)
        temporary.rename(place)
        steps = self.steps()
        retained = {*steps[-self._keep :], max(set(steps) & set(sound), default=step)}
        for old in set(steps) - retained:
            shutil.rmtree(self._place(old))

    def load_weights(self, step: int, model: PreTrainedModel | Adapter) -> Mapping[str, Tensor]:
        """Put the weights of a checkpoint into the model, and return the optimizer's tensors.

        Those are read from the file one by one, when they are asked for.

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
        if (place / _TENSORS).is_file():
            return TensorFile(place / _TENSORS)
        return _of_version_0_1(torch.load(place / _OLD_TENSORS, "cpu", mmap=True))

    def load_random(self, step: int) -> None:
        """Set PyTorch's global generators as they were when a checkpoint was written."""
        file = self._place(step) / _RANDOM
        if file.is_file():
            states = torch.load(file, map_location="cpu")
        else:
            states = torch.load(self._place(step) / _OLD_TENSORS, map_location="cpu")["random"]
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
        if "updates" not in state and (file.parent / _OLD_TENSORS).is_file():
            old = torch.load(file.parent / _OLD_TENSORS, "cpu", mmap=True)
            state["updates"] = old["optimizer"]["updates"]
        return state

    def _place(self, step: int) -> Path:
        return self._folder / f"checkpoint-{step}"


def _random_states() -> dict[str, Any]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def _of_version_0_1(saved: Mapping[str, Any]) -> dict[str, Tensor]:
    """The optimizer's tensors by the names of today."""
    old, tensors = saved["optimizer"], dict[str, Tensor]()
    for index, moments in old["adam"]["state"].items():
        tensors |= {f"{index}.first": moments["exp_avg"], f"{index}.second": moments["exp_avg_sq"]}
    for index, weights in enumerate(old["weights"]):
        if weights is not None:
            tensors[f"{index}.missing"] = divide(weights)[1]
    return tensors
