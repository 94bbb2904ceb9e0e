"""Data parallelism: processes that train one model, each on complete groups of rollouts.

`torchrun` or `accelerate launch` starts the processes. Every process holds the complete model. The
processes exchange metrics, gradients (which are summed) and rewards (since advantages are estimated
over all rollouts). Tasks are distributed round-robin and random number generators are seeded by
name, so the same rollouts are played with any number of processes. With a single process, the
methods have no effect.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from torch import Tensor, nn

from toolgym.errors import ConfigurationError

T = TypeVar("T")
M = TypeVar("M", bound=nn.Module)


class Processes:
    """The group of training processes, with their number and the rank of this process."""

    def __init__(self) -> None:
        self.rank, self.size = 0, 1
        self._device = torch.device("cpu")
        started = int(os.environ.get("WORLD_SIZE", "1"))
        if started > 1:
            # The other processes wait for process 0 while it evaluates.
            state = PartialState(cpu=not torch.cuda.is_available(), timeout=timedelta(hours=12))
            self.rank, self.size = int(state.process_index), int(state.num_processes)
            self._device = state.device
        # Each process would train alone and overwrite the files of the others.
        if self.size != started:
            raise ConfigurationError(
                f"{started} processes were started, but the process group has {self.size}. Start"
                " them with torchrun --nproc_per_node N, or with accelerate launch and its config."
            )

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and reports metrics."""
        return self.rank == 0

    def share_of(self, prompts: int) -> int:
        """Return the number of tasks of a batch that each process plays.

        Raises:
            ConfigurationError: If `prompts` is not a multiple of the number of processes.
        """
        if prompts % self.size:
            raise ConfigurationError(
                f"prompts must be a multiple of the number of processes, so that each plays whole"
                f" groups; got {prompts} for {self.size}."
            )
        return prompts // self.size

    def gather(self, values: list[T]) -> list[T]:
        """Return the concatenated values of all processes in order of rank, on every process."""
        return list(gather_object(values)) if self.size > 1 else values

    def from_main(self, function: Callable[[], T]) -> T:
        """Call a function in process 0 only, and return its result in all processes."""
        return self.gather([function()] if self.is_main else [])[0]

    def sum_of(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Add up the values with the same name over all processes; some may lack a name."""
        summed: Any = Counter()
        for each in self.gather([numbers]):
            summed.update(each)
        return dict(summed)

    def add_up(self, gradients: Callable[[], Sequence[Tensor]]) -> None:
        """Sum the gradients of all processes in place.

        Args:
            gradients: Function that returns the gradients of this process. The function is not
                called if there is only one process.
        """
        for gradient in gradients() if self.size > 1 else ():
            torch.distributed.all_reduce(gradient)

    def place(self, model: M) -> M:
        """Move a model to this process's device, since models often load onto the same GPU."""
        if self.size > 1:
            model.to(self._device)
        return model

    def align(self, tensors: Iterable[Tensor]) -> None:
        """Broadcast the tensors of process 0 to the other processes."""
        if self.size > 1:
            for tensor in tensors:
                torch.distributed.broadcast(tensor, 0)

    def wait(self) -> None:
        """Wait for all processes at a barrier."""
        if self.size > 1:
            torch.distributed.barrier()
