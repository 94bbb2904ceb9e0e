"""Decoding steps with their state on the device, so that several steps run without synchronization.

A step reads the pending token of each row, and samples and stores the next one. For a row that has
stopped, the step repeats the same computation and changes nothing. Shapes are fixed and all state
is updated in place. On CUDA, a step can therefore be recorded as a graph for each number of rows
and width, and replayed with a single call. For a model with 30 layers, a step launches 1,350
kernels. Launching the kernels from Python takes 25 ms, several times as long as executing them.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from toolgym.generation.decoder import Decoder
from toolgym.generation.sampling import sample

_log: Final = logging.getLogger(__name__)


class Row(NamedTuple):
    """The state of a row before a series of steps.

    Attributes:
        token: The last token, which is not in the cache yet.
        column: The position of that token.
        room: Maximum number of tokens still to be sampled; 0 means that the row is idle.
        uniforms: A uniform random number for each token that is still to be sampled.
    """

    token: int
    column: int
    room: int
    uniforms: Tensor


class Steps:
    """The decoding steps of one decoder.

    Args:
        decoder: The decoder; if graphs are recorded, its cache must not be reallocated.
        slots: Maximum number of rows.
        max_steps: Maximum number of steps per run.
        stop: Tokens that end a turn.
        records: Whether steps are recorded as CUDA graphs.
    """

    def __init__(
        self, decoder: Decoder, slots: int, max_steps: int, stop: Sequence[int], *, records: bool
    ) -> None:
        device = decoder.model.device
        self._decoder, self.max_steps = decoder, max_steps
        self._stop = torch.tensor(stop, dtype=torch.long, device=device)
        # For each row: the pending token, its column, the room, and the tokens sampled in this run.
        self._counts = torch.zeros(4, slots, dtype=torch.long, device=device)
        self._alive = torch.zeros(slots, dtype=torch.bool, device=device)
        # Stopped rows read and write an additional last column.
        self._uniforms = torch.zeros(slots, max_steps + 1, dtype=torch.float64, device=device)
        self._tokens = torch.zeros(slots, max_steps + 1, dtype=torch.long, device=device)
        self._log_probs = torch.zeros(slots, max_steps + 1, device=device)
        self.records = records
        self._graphs: dict[tuple[int, int, float], Any] = {}
        self._pool: Any = None
        self._stream: Any = None
        self._recorded_of: list[Any] = []

    def forget_other_models(self) -> None:
        """Discard the graphs if the address of a weight has changed since recording.

        The graphs are also discarded if peft adapters are merged, disabled or selected differently,
        since a graph contains the kernels for only one mode.
        """
        model = self._decoder.model
        found: list[Any] = [t.data_ptr() for t in (*model.parameters(), *model.buffers())]
        for module in model.modules():
            if hasattr(module, "merged_adapters"):
                chosen = (*module.merged_adapters, None, *module.active_adapters)
                found.append((module.disable_adapters, chosen))
        if found != self._recorded_of:
            self._graphs.clear()
            self._pool, self._recorded_of = None, found

    def run(
        self, rows: Sequence[Row], steps: int, width: int, temperature: float
    ) -> list[tuple[list[int], list[float]]]:
        """Run `steps` decoding steps over the first slots.

        Args:
            rows: The rows of the first slots.
            steps: Number of steps, at most `max_steps`.
            width: Number of columns that the model reads, which must suffice for the last step.

        Returns:
            The sampled tokens of each row and their log-probabilities.
        """
        count = len(rows)
        tokens, columns, room, uniforms = zip(*rows, strict=True)
        self._alive[:count] = False  # so that recording a step changes nothing
        self._counts[:, :count] = torch.tensor([tokens, columns, room, [0] * count])
        self._uniforms[:count] = torch.stack(uniforms)
        step = self._step_of(count, width, temperature)
        self._alive[:count] = self._counts[2, :count] > 0
        for _ in range(steps):
            step()
        counts = self._counts[3, :count].tolist()
        sampled = self._tokens[:count].tolist(), self._log_probs[:count].tolist()
        return [(t[:n], p[:n]) for n, t, p in zip(counts, *sampled, strict=True)]

    def _step(self, rows: int, width: int, temperature: float) -> None:
        """Run one step, in place and without synchronization with the host."""
        token, column, room, count = self._counts[:, :rows]
        alive = self._alive[:rows]
        columns = column[:, None]
        logits = self._decoder.logits(0, token[:, None], columns, columns, width)
        index = count.masked_fill(~alive, self.max_steps)[:, None]
        uniforms = self._uniforms[:rows].gather(1, index).squeeze(1)
        sampled, log_probs = sample(logits, uniforms, temperature)
        self._tokens[:rows].scatter_(1, index, sampled[:, None])
        self._log_probs[:rows].scatter_(1, index, log_probs[:, None])
        token.copy_(torch.where(alive, sampled, token))
        column.add_(alive)
        count.add_(alive)
        has_stopped = (sampled[:, None] == self._stop).any(dim=1)
        alive.logical_and_(~has_stopped & (count < room))

    def _step_of(self, rows: int, width: int, temperature: float) -> Callable[[], object]:
        """Return the graph of a step with these shapes, or the plain step function if no graph is
        recorded."""

        def step() -> None:
            self._step(rows, width, temperature)

        if not self.records:
            return step
        key = (rows, width, temperature)
        if key not in self._graphs:
            try:
                self._graphs[key] = self._recorded(step)
            except Exception as problem:  # noqa: BLE001 - drivers raise many types
                self.records = False
                self._graphs.clear()
                _log.warning(
                    "Decoding steps run without CUDA graphs, several times slower: %s.",
                    str(problem).strip().split("\n")[0],
                )
                return step
        replay: Callable[[], object] = self._graphs[key].replay
        return replay

    def _recorded(self, step: Callable[[], None]) -> Any:
        """Record the CUDA graph of a step, after a warm-up run that loads and selects kernels."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(self._stream):
                step()
                with _refusing_waits():
                    step()
        finally:  # also if a step fails, since its running kernels still read the rows' state
            torch.cuda.current_stream().wait_stream(self._stream)
        random = torch.cuda.default_generators[torch.cuda.current_device()]
        state = random.clone_state()
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU at the same time.
        recording: Any = torch.cuda.graph(
            graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
        )
        try:
            with torch.cuda.stream(self._stream), recording:
                step()
        except Exception:
            # A failed recording leaves the generator and allocator in recording mode: reset them.
            with contextlib.suppress(Exception):
                random.graphsafe_set_state(state)
            with contextlib.suppress(Exception):
                torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), self._pool)
            raise
        return graph


@contextlib.contextmanager
def _refusing_waits() -> Any:
    """Context manager that raises RuntimeError if the host waits for the device, which a graph
    cannot do.
    """
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():  # the mode warns that it is a prototype
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
