"""The generation engine: extends token sequences with sampled turns and appended answers.

All sequences of a call advance together, each in a slot of one KV cache.

* `admit` gives free slots to waiting sequences. Each distinct prompt is read once and copied.
* `decode` samples a token for each active sequence, or on CUDA several tokens per synchronization.
* `answer` calls `reply` for finished turns, reads the answers, and frees slots.

A sequence whose turn is over waits for its reply. `reply` is called when no sequence is active or
at least half of the sequences are waiting. Answers require a separate forward pass, so several
answers are processed in one pass.

On CUDA, shapes are rounded up so that a step of each shape can be recorded
(`toolgym.generation.steps`). The number of rows is rounded up to 1, 2, 3, 4, 6, 8, 12, 16 and so
on, and the number of columns to three significant bits, in a cache of fixed size. On a CPU, shapes
are exact.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import PreTrainedModel

from toolgym.errors import ConfigurationError
from toolgym.generation.decoder import Decoder, check_model
from toolgym.generation.models import common_length, context_length
from toolgym.generation.own_cache import OwnCacheDecoder
from toolgym.generation.sampling import uniform_numbers
from toolgym.generation.shared_prompts import can_share, sharing
from toolgym.generation.steps import Row, Steps

TOKENS_READ: Final = 16_384
"""Maximum number of tokens of prompts or answers per pass. Each token takes about 20 bytes per
hidden unit.
"""
_COMMON: Final = 128  # minimum length of a common prefix that is read only once
_STEPS: Final = 8  # decoding steps per synchronization, on CUDA
_NARROWEST: Final = 128  # minimum number of columns, on CUDA
_SHARE: Final = 0.4  # maximum share of the free GPU memory for a cache
# minimum share of the free GPU memory, even at the expense of reserved memory
_LEAST_SHARE: Final = 0.1
_log: Final = logging.getLogger(__name__)


@dataclass(eq=False)
class Generation:
    """A token sequence to continue; `Engine.generate` extends its lists.

    Attributes:
        prompt: Prompt tokens.
        stream: Name that seeds the random numbers. The n-th token is sampled with the n-th uniform
            number of the stream, independently of the batch.
        max_tokens: Maximum length of `tokens`, including appended answers.
        tokens: The tokens after the prompt: sampled turns and appended answers.
        mask: 1 where a token was sampled, 0 where it was appended.
        log_probs: Log-probabilities of the sampled tokens, under the distribution at the sampling
            temperature; 0.0 where a token was appended or the temperature is 0.
        turns: Start and end of each sampled turn in `tokens`.
    """

    prompt: list[int]
    stream: str
    max_tokens: int
    tokens: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    turns: list[tuple[int, int]] = field(default_factory=list)


Reply = Callable[[list[Generation]], list[list[int] | None]]
"""Function that maps generations whose turn is over to their answers. An answer is a list of tokens
to append, or None to end the generation.
"""


class _Sequence:
    """A generation in a slot.

    Attributes:
        limit: Maximum number of tokens after the prompt.
        begin: Start of the current turn in `tokens`.
        unread: Tokens that are not in the cache yet. The next step reads the last of them.
        active: Whether the current turn is unfinished.
    """

    def __init__(self, generation: Generation, limit: int) -> None:
        self.generation, self.limit = generation, limit
        self.begin, self.active = 0, True
        self.unread = generation.prompt[-1:]
        self._uniforms = torch.zeros(0)

    def draw(self, temperature: float) -> None:
        """Draw the uniform random numbers for all tokens, with zeros for steps after the last
        token.
        """
        self._uniforms = torch.zeros(self.limit + _STEPS + 1, dtype=torch.float64)
        if temperature:
            self._uniforms[: self.limit] = uniform_numbers(self.generation.stream, self.limit)

    @property
    def cached(self) -> int:
        """Number of tokens in the cache."""
        length = len(self.generation.prompt) + len(self.generation.tokens)
        return length - len(self.unread)

    def room(self, turn_tokens: int | None) -> int:
        """Return the maximum number of tokens that can be added to the current turn."""
        length = len(self.generation.tokens)
        left = self.limit - length
        return left if turn_tokens is None else min(left, self.begin + turn_tokens - length)

    def row(self, turn_tokens: int | None, steps: int) -> Row:
        """Return the state of the sequence as a `Row` for at most `steps` steps."""
        length = len(self.generation.tokens)
        room = self.room(turn_tokens) if self.active else 0
        uniforms = self._uniforms[length : length + steps + 1]
        return Row(self.unread[-1], self.cached, room, uniforms)

    def append(self, tokens: list[int], log_probs: list[float], sampled: int) -> None:
        """Append sampled tokens (`sampled` = 1) or tokens of an answer (`sampled` = 0)."""
        self.generation.tokens += tokens
        self.generation.mask += [sampled] * len(tokens)
        self.generation.log_probs += log_probs
        self.unread = tokens[-1:] if sampled else self.unread + tokens


class Engine:
    """Generates text with one model.

    Args:
        model: A causal language model. If `check_model` rejects the model, sequences are generated
            one after another with the model's own type of cache.
        stop: Tokens that end a turn; the final token is part of the turn.
        slots: Maximum number of sequences in the KV cache. On CUDA, the number is lower if the
            cache would otherwise take more than two fifths of the free memory. The next call reuses
            the cache (see `release`).

    Attributes:
        reserved: Number of bytes of free GPU memory that the cache must not use, for example
            because they are needed for updates between two calls.
    """

    def __init__(self, model: PreTrainedModel, *, stop: Collection[int], slots: int = 64) -> None:
        self.model, self.stop, self.slots = model, frozenset(stop), slots
        self._cache: Literal["growing", "static", "own"] | None = None  # chosen in the first call
        self._kept: _Batch | None = None
        self._can_record = True
        self.reserved = 0

    def generate(
        self,
        generations: Sequence[Generation],
        reply: Reply | None = None,
        *,
        temperature: float = 1.0,
        turn_tokens: int | None = None,
    ) -> None:
        """Continue every generation until it has ended or is full.

        A turn ends when a token of `stop` is sampled, when the turn has `turn_tokens` tokens, when
        the generation has `max_tokens` tokens, or when the maximum context length of the model is
        reached. Then `reply` is called with the generations whose turn is over. An answer must
        leave room for at least one sampled token.

        Args:
            generations: Generations whose `tokens` are empty. If a prompt leaves no room for a
                token, the generation stays empty and `reply` is not called for it.
            reply: Function that returns the replies to finished turns. None ends each generation
                after its first turn.
            temperature: Sampling temperature; 0 selects the most likely token.
            turn_tokens: Maximum number of tokens of one turn; None means no limit.

        Raises:
            ValueError: A prompt is empty, or an answer leaves no room for a token.
        """
        if not generations:
            return
        if not all(generation.prompt for generation in generations):
            raise ValueError("a prompt needs at least one token.")
        with _generating(self.model):
            if self._cache is None:
                self._choose_cache()
            self._generate(generations, reply, temperature, turn_tokens)

    def release(self) -> None:
        """Free the cache on CUDA. The next call creates another one."""
        self._kept = None
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()

    def _generate(
        self,
        generations: Sequence[Generation],
        reply: Reply | None,
        temperature: float,
        turn_tokens: int | None,
    ) -> None:
        context = context_length(self.model)
        waiting = deque[_Sequence]()
        for each in generations:
            limit = min(each.max_tokens, context - len(each.prompt))
            if limit > 0:
                waiting.append(_Sequence(each, limit))
        if not waiting:
            return
        batch = self._batch(waiting)
        while True:
            active = sum(each.active for each in batch.sequences)
            if 2 * active <= len(batch.sequences):
                batch.answer(reply)
                batch.admit(waiting, temperature)
            if not batch.sequences:
                return
            batch.decode(temperature, turn_tokens)

    def _batch(self, waiting: Collection[_Sequence]) -> _Batch:
        """Return an empty batch for these sequences, and reuse a static cache that is large
        enough.
        """
        slots = min(self.slots, len(waiting))
        if self._cache == "own":
            return _Batch(OwnCacheDecoder(self.model, slots), self.stop, slots)
        if self._cache != "static":
            return _Batch(Decoder(self.model, slots), self.stop, slots)
        columns = _rounded_columns(max(len(s.generation.prompt) + s.limit for s in waiting))
        if self._kept is not None:
            if self._kept.slots >= slots and self._kept.columns >= columns:
                self._kept.clear()
                return self._kept
            slots, columns = max(slots, self._kept.slots), max(columns, self._kept.columns)
            self._kept = None  # free the memory before the next cache is allocated
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()
            free, _ = torch.cuda.mem_get_info(self.model.device)
            affordable = _share(free, self.reserved) // (self._column_bytes() * columns)
            self.slots = max(1, min(self.slots, affordable))  # also for later calls
            slots = min(slots, self.slots)
        decoder = Decoder(self.model, slots, columns + 1)
        records = self._can_record and self.model.device.type == "cuda"
        self._kept = _Batch(decoder, self.stop, slots, columns, records=records)
        self._kept.clear()
        return self._kept

    def _column_bytes(self) -> int:
        """Return the number of bytes of one token in the cache."""
        decoder = Decoder(self.model, 1)
        decoder.feed(0, [[0]], [0])
        return sum(cached[0, :, 0].nbytes for cached in decoder.cache.tensors())

    def _choose_cache(self) -> None:
        """Select the fastest cache whose log-probabilities match those of plain forward passes."""
        try:
            check_model(self.model)
        except ConfigurationError as problem:
            self._cache = "own"
            _log.warning("One sequence is generated at a time: %s", problem)
            return
        self._cache = "growing"
        if self.model.device.type == "cuda":
            self._try_static_cache()

    def _try_static_cache(self) -> None:
        """Use the static cache with CUDA graphs if its log-probabilities are correct in a trial
        run.

        The error may be up to three times that of the growing cache, which differs from plain
        forward passes only by rounding.
        """
        try:
            expected = self._trial_error()
            self._cache = "static"
            error = self._trial_error()
            self._can_record = self._kept is not None and self._kept.steps.records
            problem = f"its log-probabilities are off by {error:.2g}, without it by {expected:.2g}"
            if error <= 3 * expected + 1e-3:
                return
        except Exception as raised:  # noqa: BLE001 - drivers raise many types
            first = str(raised).strip().split("\n")[0]
            problem = f"{type(raised).__name__}: {first}"
        self._cache, self._kept = "growing", None
        _log.warning("Generation uses no static cache and no CUDA graphs: %s.", problem)

    def _trial_error(self) -> float:
        """Return the largest mean error of log-probabilities of a few sequences with two turns."""
        vocabulary = self.model.config.get_text_config().vocab_size
        draw = torch.Generator().manual_seed(0)
        texts = [torch.randint(vocabulary, (n,), generator=draw).tolist() for n in (23, 9, 31)]
        trials = [Generation(list(t), f"trial-{n}", 22) for n, t in enumerate([*texts, texts[0]])]

        def reply(over: list[Generation]) -> list[list[int] | None]:
            return [texts[1][:5] if len(each.turns) == 1 else None for each in over]

        self._generate(trials, reply, 1.0, 8)
        return max(map(self._log_prob_error, trials))

    def _log_prob_error(self, made: Generation) -> float:
        """Return the mean difference between recorded log-probabilities and those of plain forward
        passes.
        """
        ids = torch.tensor([made.prompt + made.tokens], device=self.model.device)
        logits = self.model(input_ids=ids).logits[0, len(made.prompt) - 1 : -1]
        plain = (
            logits.float()
            .log_softmax(1)
            .gather(1, ids[0, len(made.prompt) :, None])
            .squeeze(1)
            .cpu()
        )
        mask = torch.tensor(made.mask, dtype=torch.bool)
        return float((plain - torch.tensor(made.log_probs))[mask].abs().mean())


class _Batch:
    """The sequences in the slots of a decoder. Sequence i has slot i.

    Args:
        slots: Maximum number of sequences.
        columns: Maximum number of tokens of a sequence, for a cache of fixed size and rounded
            shapes. If 0, the cache grows and shapes are exact.
        records: Whether steps are recorded as CUDA graphs.
    """

    def __init__(
        self,
        decoder: Decoder,
        stop: Collection[int],
        slots: int,
        columns: int = 0,
        *,
        records: bool = False,
    ) -> None:
        self.slots, self.columns = slots, columns
        self.sequences: list[_Sequence] = []
        self._decoder, self._stop = decoder, stop
        self._can_share = not columns and can_share(decoder.model)
        max_steps = _STEPS if columns else 1
        self.steps = Steps(decoder, slots, max_steps, sorted(stop), records=records)

    def clear(self) -> None:
        """Remove all sequences, and discard any graphs that are no longer valid for the model."""
        self.sequences.clear()
        self.steps.forget_other_models()

    def admit(self, waiting: deque[_Sequence], temperature: float) -> None:
        """Fill the free slots. Each distinct prompt is read once, without its last token, and then
        copied.
        """
        first = len(self.sequences)
        slot_of = dict[tuple[int, ...], int]()
        if self._decoder.keeps_prefixes:
            slot_of = {tuple(s.generation.prompt): slot for slot, s in enumerate(self.sequences)}
        copies = list[_Sequence]()
        while waiting and len(self.sequences) + len(copies) < self.slots:
            new = waiting.popleft()
            new.draw(temperature)
            next_slot = len(self.sequences)
            if slot_of.setdefault(tuple(new.generation.prompt), next_slot) == next_slot:
                self.sequences.append(new)
            else:
                copies.append(new)
        prompts = [s.generation.prompt for s in self.sequences[first:]]
        if prompts:
            start = self._read_common_beginning(first, prompts)
            self._read(first, [p[start:-1] or p[start:] for p in prompts], [start] * len(prompts))
        sources = [slot_of[tuple(s.generation.prompt)] for s in copies]
        self.sequences += copies
        self._decoder.cache.arrange(
            [*range(len(self.sequences) - len(copies)), *sources],
            max((s.cached for s in copies), default=0),
        )

    def _read_common_beginning(self, first: int, prompts: Sequence[list[int]]) -> int:
        """Read the common prefix of the prompts once, copy its cache, and return its length."""
        low, high = min(prompts), max(prompts)  # all prompts have the common prefix of these two
        common = min(common_length(low, high), min(map(len, prompts)) - 1)
        if len(prompts) == 1 or common < _COMMON:
            return 0
        self._decoder.feed(first, [low[:common]], [0])
        self._decoder.cache.arrange([*range(first), *[first] * len(prompts)], common)
        return common

    def _read(self, first: int, texts: Sequence[list[int]], starts: Sequence[int]) -> None:
        """Read tokens into the slots, starting at slot `first`, in passes of bounded memory."""
        rows = max(1, TOKENS_READ // max(map(len, texts)))
        for start in range(0, len(texts), rows):
            chunk = slice(start, start + rows)
            self._decoder.feed(first + start, texts[chunk], starts[chunk])

    def decode(self, temperature: float, turn_tokens: int | None) -> None:
        """Sample a token for each active sequence, or several tokens if the cache is static."""
        active = [slot for slot, s in enumerate(self.sequences) if s.active]
        rows = self._rows(active[-1] + 1)
        if self._rows(len(active)) < rows:
            self._keep_first([s.active for s in self.sequences])
            rows = self._rows(len(active))
            active = list(range(len(active)))
        going = [self.sequences[slot] for slot in active]
        max_steps = self.steps.max_steps
        steps = min(max_steps, max(s.room(turn_tokens) for s in going))
        width = max(s.cached for s in going) + steps
        if self.columns:
            width = min(_rounded_columns(width), self.columns)
        batch = [s.row(turn_tokens, max_steps) for s in self.sequences[:rows]]
        idle = Row(0, 0, 0, torch.zeros(max_steps + 1, dtype=torch.float64))
        batch += [idle] * (rows - len(batch))
        with ExitStack() as contexts:
            if self._can_share:
                prompts = [tuple(s.generation.prompt) for s in going]
                contexts.enter_context(
                    sharing(self._decoder.model, prompts, [s.cached for s in going])
                )
            sampled = self.steps.run(batch, steps, width, temperature)
        for slot in active:
            sequence, (tokens, log_probs) = self.sequences[slot], sampled[slot]
            sequence.append(tokens, log_probs, 1)
            if tokens[-1] in self._stop or sequence.room(turn_tokens) <= 0:
                sequence.active = False
                generation = sequence.generation
                generation.turns.append((sequence.begin, len(generation.tokens)))

    def _rows(self, count: int) -> int:
        """Return the number of rows in a decoding step for `count` sequences."""
        return min(_rounded(count), self.slots) if self.columns else count

    def answer(self, reply: Reply | None) -> None:
        """Call `reply` for all finished turns, read the answers, and remove ended sequences."""
        self._keep_first([s.active for s in self.sequences])
        first = sum(s.active for s in self.sequences)
        over = self.sequences[first:]
        if not over:
            return
        answers = reply([s.generation for s in over]) if reply else [None] * len(over)
        for sequence, tokens in zip(over, answers, strict=True):
            if tokens is not None:
                if len(sequence.generation.tokens) + len(tokens) >= sequence.limit:
                    raise ValueError(
                        f"an answer of {len(tokens)} tokens leaves no room for a turn."
                    )
                sequence.append(tokens, [0.0] * len(tokens), 0)
                sequence.begin, sequence.active = len(sequence.generation.tokens), True
        self._keep_first([s.active for s in self.sequences])
        self.sequences = [s for s in self.sequences if s.active]
        answered = self.sequences[first:]
        if answered:
            starts = [s.cached for s in answered]
            self._read(first, [s.unread[:-1] or s.unread for s in answered], starts)
            for sequence in answered:
                sequence.unread = sequence.unread[-1:]

    def _keep_first(self, wanted: Sequence[bool]) -> None:
        """Swap sequences so that the sequences to keep have the first slots."""
        count = sum(wanted)
        order = list(range(len(wanted)))
        holes = [slot for slot in range(count) if not wanted[slot]]
        others = [slot for slot in range(count, len(wanted)) if wanted[slot]]
        for hole, other in zip(holes, others, strict=True):
            order[hole], order[other] = other, hole
        if holes:
            self._decoder.cache.arrange(order, max(s.cached for s in self.sequences))
            self.sequences = [self.sequences[slot] for slot in order]


def _share(free: int, reserved: int) -> int:
    """Return how much of the free memory a cache may take.

    >>> [_share(100, reserved) for reserved in (0, 70, 200)]
    [40, 30, 10]
    """
    return max(int(_LEAST_SHARE * free), min(int(_SHARE * free), free - reserved))


def _rounded(count: int) -> int:
    """Round a count up to the next number in the series 1, 2, 3, 4, 6, 8, 12, 16 and so on.

    >>> [_rounded(count) for count in (1, 2, 3, 5, 7, 9, 100)]
    [1, 2, 3, 6, 8, 12, 128]
    """
    power = 1 << (count - 1).bit_length()
    return power * 3 // 4 if count <= power * 3 // 4 else power


def _rounded_columns(count: int) -> int:
    """Return the next multiple of 64 with at most three significant bits, at least 128.

    >>> [_rounded_columns(count) for count in (1, 129, 300, 570, 1100)]
    [128, 192, 320, 640, 1280]
    """
    step = max(64, 1 << max(0, (count - 1).bit_length() - 3))
    return max(_NARROWEST, -(-count // step) * step)


@contextmanager
def _generating(model: PreTrainedModel) -> Iterator[None]:
    """Context manager for generation: evaluation mode, no gradients, no cuDNN attention.

    cuDNN builds a plan for each new shape, which takes tens to hundreds of milliseconds.
    """
    was_training = model.training
    model.train(False)
    kernels: list[Any] = [
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
    ]
    try:
        with ExitStack() as contexts:
            contexts.enter_context(torch.inference_mode())
            if model.device.type == "cuda":
                contexts.enter_context(torch.cuda.device(model.device))
                contexts.enter_context(sdpa_kernel(kernels))
            yield
    finally:
        model.train(was_training)
