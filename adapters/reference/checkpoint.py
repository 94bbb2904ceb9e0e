"""Checkpoints: folders that are written atomically, from which a run resumes exactly.

The folder `checkpoint-N` contains the model or adapter in the format of `save_pretrained`, the
tokenizer, and two more files:

- `optimizer.safetensors`: the moments of AdamW and the float32 master weights.
- `trainer_state.json`, which is written last: the step, the position in the task order and the
  state of the guards.

A checkpoint is written under a temporary name and renamed when it is complete. If the process is
killed, the previous checkpoint remains intact. No random state is saved, since the seeds of
sampling are derived from the names of rollouts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.low_rank import Adapter
from adapters.training.models.weights import read_weights
from toolgym.errors import ConfigurationError

_STATE, _TENSORS = "trainer_state.json", "optimizer.safetensors"


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: Folder of the checkpoints. The folder is created if it does not exist.
        keep: Number of latest checkpoints to keep.
        on_save: Function that is called with the folder of each checkpoint before the checkpoint is
            complete, so that it can add files.
    """

    def __init__(
        self, folder: Path, keep: int, on_save: Callable[[Path], None] = lambda folder: None
    ) -> None:
        self._folder, self._keep, self._on_save = folder, keep, on_save

    def steps(self) -> list[int]:
        """Return the steps that have a complete checkpoint, in order."""
        names = (file.parent.name for file in self._folder.glob(f"checkpoint-*/{_STATE}"))
        suffixes = (name.removeprefix("checkpoint-") for name in names)
        return sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())

    def save(
        self,
        step: int,
        model: PreTrainedModel | Adapter,
        tokenizer: PreTrainedTokenizerBase,
        tensors: Mapping[str, Tensor],
        state: Mapping[str, Any],
        healthy: Collection[int] = (),
    ) -> None:
        """Write a checkpoint and remove the oldest ones.

        Args:
            model: The trained model, or its adapter.
            tensors: State of the optimizer.
            state: All other state, in JSON types.
            healthy: Steps whose weights the guards found healthy. The latest checkpoint of one of
                these steps is kept regardless of its age.
        """
        target = self._path(step)
        unfinished = target.with_name(f".{target.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        save_file(dict(tensors), unfinished / _TENSORS)
        self._on_save(unfinished)
        (unfinished / _STATE).write_text(json.dumps({"global_step": step, **state}))
        shutil.rmtree(target, ignore_errors=True)
        unfinished.rename(target)
        steps = self.steps()
        kept = {*steps[-self._keep :], max(set(steps) & set(healthy), default=step)}
        for outdated in set(steps) - kept:
            shutil.rmtree(self._path(outdated))

    def load(
        self, step: int, model: PreTrainedModel | Adapter
    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Load the weights of a checkpoint into the model.

        Returns:
            The tensors of the optimizer, and all other state.

        Raises:
            ConfigurationError: If the checkpoint is corrupt or belongs to a different model.
        """
        path = self._path(step)
        try:
            state: dict[str, Any] = json.loads((path / _STATE).read_text())
            tensors = load_file(path / _TENSORS)
            if isinstance(model, Adapter):
                model.load(path)
            else:
                read_weights(model, path)
        except (OSError, ValueError, SafetensorError) as problem:
            raise ConfigurationError(
                f"{path} cannot be read ({problem}). Remove it to resume from an older checkpoint."
            ) from problem
        except RuntimeError as problem:
            raise ConfigurationError(
                f"{path} has another model than the trained one. Pass the model of the checkpoint,"
                " or use another folder."
            ) from problem
        return tensors, state

    def _path(self, step: int) -> Path:
        return self._folder / f"checkpoint-{step}"
