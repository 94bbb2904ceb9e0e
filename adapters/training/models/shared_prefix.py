"""Sequences that begin alike in one row: every common beginning is read once, nothing is padded.

    texts    tools, schema, question, answer 1      row    tools |
             tools, schema, question, answer 2             schema, question | answer 1 | answer 2 |
             tools, other schema, question, answer         other schema, question, answer

A group's rollouts have their prompt in common, and all prompts of an environment its tools. What a
model computes for such a beginning depends on nothing behind it, so it is computed once, and each
text goes on from there: its tokens keep the positions that they have in the text, and their
attention sees the beginnings that lead to them and themselves. Its gradient adds up over the texts
by itself. That is prefix grouping (Liu et al. 2025, arXiv:2506.05433), on a tree.

No mask over the whole row is made: it would grow with the square of a pass, and so would the time
to compute what it hides. The row is cut into blocks, and the model's own attention function is
called for each with the keys that it may see, so that softcaps, sinks and grouped heads stay as
they are. Whether a model computes the same that way is measured (`sharing_problem`).
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface

from toolgym.generation.precision import in_float32

LEAST: Final = 128
"""Tokens from which on a common beginning is read once, unless a setting says another number."""
_NAME: Final = "toolgym_shared_prefix"
_BLOCK: Final = 256  # tokens of texts that one call of attention takes together


class Segment(NamedTuple):
    """A part of a text: its number, the same in all texts that share it, and its tokens."""

    number: int
    start: int
    stop: int


Path = tuple[Segment, ...]


def paths(texts: Sequence[Sequence[int]], shareable: Sequence[int], least: int) -> dict[int, Path]:
    """Divide each text into the beginnings that it shares with others, and its own rest.

    Args:
        texts: Token ids.
        shareable: How many of the first tokens of each may be shared; not all of them.
        least: Tokens that a common beginning must have.

    Returns:
        For each place in `texts`, its segments; those that share a beginning follow each other.

    >>> paths(["abcx", "de", "abcy"], [3, 1, 3], least=2)
    {0: (Segment(number=0, start=0, stop=3), Segment(number=1, start=3, stop=4)), \
2: (Segment(number=0, start=0, stop=3), Segment(number=2, start=3, stop=4)), \
1: (Segment(number=3, start=0, stop=2),)}
    """
    found: dict[int, Path] = {}
    numbers = itertools.count()

    def divide(rows: Sequence[int], depth: int, above: Path) -> None:
        clusters: dict[Any, list[int]] = {}
        for row in rows:
            is_alone = shareable[row] < depth + least
            key = row if is_alone else tuple(texts[row][depth : depth + least])
            clusters.setdefault(key, []).append(row)
        for cluster in clusters.values():
            if len(cluster) == 1:
                rest = Segment(next(numbers), depth, len(texts[cluster[0]]))
                found[cluster[0]] = (*above, rest)
            else:
                end = min(shareable[row] for row in cluster)
                end = depth + common_beginning([texts[row][depth:end] for row in cluster])
                divide(cluster, end, (*above, Segment(next(numbers), depth, end)))

    divide(range(len(texts)), 0, ())
    return found


def common_beginning(texts: Sequence[Sequence[int]]) -> int:
    """The number of tokens with which all texts begin, of which none is longer than another."""
    listed = [list(text) for text in texts]
    first, last = min(listed), max(listed)  # where these two agree, what lies between does too
    pairs = enumerate(zip(first, last, strict=True))
    return next((place for place, (one, other) in pairs if one != other), len(first))


def alike(texts: Sequence[Sequence[int]], prompts: Sequence[int]) -> list[list[int]]:
    """The places of the texts, those together whose prompts are alike for more than half.

    Args:
        texts: Token ids; they are clustered in their order as lists.
        prompts: How many of the first tokens of each are its prompt.

    >>> alike(["abcx", "defx", "abcy"], prompts=[3, 3, 3])
    [[0, 2], [1]]
    """
    clusters: list[list[int]] = []
    for place in sorted(range(len(texts)), key=lambda place: list(texts[place])):
        first = clusters[-1][0] if clusters else place
        half = max(prompts[first], prompts[place]) // 2 + 1
        if clusters and texts[first][:half] == texts[place][:half]:
            clusters[-1].append(place)
        else:
            clusters.append([place])
    return clusters


def divided(
    found: dict[int, Path], learnt: Sequence[int], tokens: int, logits: int
) -> Iterator[list[int]]:
    """Divide texts into rows.

    Args:
        found: What `paths` returned.
        learnt: For each text how many of its tokens the output layer is asked for.
        tokens: Most tokens of a row, unless a single text has more.
        logits: Most tokens of a row that the output layer is asked for, with the same exception.
    """
    row: list[int] = []
    read: set[int] = set()
    size = asked = 0
    for text, path in found.items():
        fresh = sum(s.stop - s.start for s in path if s.number not in read)
        if row and (size + fresh > tokens or asked + learnt[text] > logits):
            yield row
            row, read, size, asked, fresh = [], set(), 0, 0, path[-1].stop
        row.append(text)
        read.update(segment.number for segment in path)
        size, asked = size + fresh, asked + learnt[text]
    if row:
        yield row


@dataclass
class _Block:
    """Neighbouring tokens of the row that are attended to in one call.

    Attributes:
        context: The blocks whose tokens all of them see.
        positions: Of each token, in its text.
        owners: For each token the number of its text among those of the block.
        context_positions: Of the tokens of the context.
    """

    context: tuple[int, ...]
    context_positions: list[int]
    positions: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    masks: dict[Any, Tensor | None] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether it is one text from its first token on, so that attention is merely causal."""
        return not self.context and self.owners[-1] == 0

    def mask(self, query: Tensor, window: int | None, is_additive: bool) -> Tensor | None:
        """The mask, (1, 1, queries, keys); None where attention is merely causal."""
        key = (query.dtype, query.device, window, is_additive)
        if key not in self.masks:
            self.masks[key] = self._made(query, window, is_additive)
        return self.masks[key]

    def _made(self, query: Tensor, window: int | None, is_additive: bool) -> Tensor | None:
        reach = math.inf if window is None else window
        if self.is_plain and len(self.positions) <= reach and not is_additive:
            return None
        device = query.device
        own = torch.tensor(self.positions, device=device)
        owner = torch.tensor(self.owners, device=device)
        seen = torch.tensor([*self.context_positions, *self.positions], device=device)
        visible = seen <= own[:, None]
        if window is not None:
            visible &= seen > own[:, None] - window
        visible[:, len(self.context_positions) :] &= owner == owner[:, None]
        least = torch.finfo(query.dtype).min
        hidden = torch.full(visible.shape, least, dtype=query.dtype, device=device)
        return hidden.masked_fill(visible, 0.0)[None, None]


class Packing:
    """Texts in one row.

    Args:
        texts: Token ids of all texts.
        found: Their segments, by their places in `texts`.
        rows: The texts of this row, in the order of `found`.

    Attributes:
        ids: [1, L] int.
        positions: [1, L] int, of each token in its text.
        shifts: For each of `rows` the place in the row of a token of its own, less its position.
    """

    def __init__(
        self, texts: Sequence[Sequence[int]], found: dict[int, Path], rows: Sequence[int]
    ) -> None:
        self._blocks: list[_Block] = []
        self.shifts: list[int] = []
        self.windows: set[int | None] = set()
        uses = Counter(segment.number for row in rows for segment in found[row])
        ids: list[int] = []
        read: dict[int, int] = {}
        for row in rows:
            shared = [segment for segment in found[row] if uses[segment.number] > 1]
            context: tuple[int, ...] = ()
            for segment in shared:
                if segment.number not in read:
                    read[segment.number] = len(self._blocks)
                    self._append(context, segment.start, segment.stop, is_text=False)
                    ids += texts[row][segment.start : segment.stop]
                context = (*context, read[segment.number])
            start = shared[-1].stop if shared else 0
            self.shifts.append(len(ids) - start)
            self._append(context, start, len(texts[row]), is_text=True)
            ids += texts[row][start:]
        self.ids = torch.tensor([ids])
        self.positions = torch.tensor([[p for block in self._blocks for p in block.positions]])
        self._sizes = [len(block.positions) for block in self._blocks]

    def _append(self, context: tuple[int, ...], start: int, stop: int, is_text: bool) -> None:
        """Append the tokens of a text, or of a beginning, to a block."""
        last = self._blocks[-1] if self._blocks else None
        before = [p for place in context for p in self._blocks[place].positions]
        fits = last is not None and len(last.positions) + stop - start <= _BLOCK
        if last is None or not is_text or not context or last.context != context or not fits:
            last = _Block(context, before)
            self._blocks.append(last)
        owner = last.owners[-1] + 1 if last.owners else 0
        last.positions += range(start, stop)
        last.owners += [owner] * (stop - start)

    def attend(
        self, own: str, module: Any, query: Tensor, key: Tensor, value: Tensor, **options: Any
    ) -> tuple[Tensor, None]:
        """Attention of the row, (1, heads, L, size) each, by the model's own function."""
        attention = _own_attention(own, module)
        window = options.get("sliding_window")
        self.windows.add(window)
        queries, keys, values = (torch.split(t, self._sizes, dim=2) for t in (query, key, value))
        results = []
        for place, block in enumerate(self._blocks):
            seen = (*block.context, place)
            result, _ = attention(
                module,
                queries[place],
                torch.cat([keys[i] for i in seen], dim=2) if block.context else keys[place],
                torch.cat([values[i] for i in seen], dim=2) if block.context else values[place],
                block.mask(query, window, own == "eager"),
                **options,
            )
            results.append(result)
        return torch.cat(results, dim=1), None


def _own_attention(name: str, module: Any) -> Any:
    if name == "eager":  # every modeling file has its own
        return sys.modules[type(module).__module__].eager_attention_forward
    return ALL_ATTENTION_FUNCTIONS[name]


_in_use: dict[int, tuple[Packing, str]] = {}  # by the identity of a model's config


def _attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **options: Any
) -> tuple[Tensor, None]:
    """What `transformers` calls for attention while a packing is in use."""
    packing, own = _in_use[id(module.config)]
    return packing.attend(own, module, query, key, value, **options)


AttentionInterface.register(_NAME, _attend)


@contextmanager
def reading(model: PreTrainedModel, packing: Packing | None) -> Iterator[None]:
    """A context in which the model's attention is that of a packing; backward passes included.

    Args:
        packing: Of the row that the model is called with; None changes nothing.
    """
    if packing is None:
        yield
        return
    config: Any = model.config.get_text_config()
    with attending(config, _NAME, _in_use, (packing, config._attn_implementation)):
        yield


@contextmanager
def attending(config: Any, name: str, in_use: dict[int, Any], entry: Any) -> Iterator[None]:
    """A context in which a model's attention is a registered one of ours.

    Args:
        config: Of the model.
        name: Of the attention.
        in_use: Where it finds `entry`, by the identity of the config.
    """
    own = config._attn_implementation
    in_use[id(config)] = entry
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = own
        del in_use[id(config)]


_FULL, _SLIDING = "full_attention", "sliding_attention"
_TOLERANCE: Final = 1e-2  # of the logits' spread; rounding makes 1e-5 of it


def sharing_problem(model: PreTrainedModel) -> str:
    """Why this model cannot read shared beginnings once; empty where it can, which is measured."""
    own = model.config._attn_implementation
    if own not in ("sdpa", "eager"):
        return f"its attention is {own}, and only sdpa and eager can be called for parts of a row"
    unknown = sorted(set(_kinds(model)) - {_FULL, _SLIDING})
    if unknown:
        return f"it has layers of the kind {', '.join(unknown)}"
    was_training = model.training
    model.train(False)
    try:
        with in_float32(model):
            error, windows = _measured(model)
    except (TypeError, ValueError, LookupError, RuntimeError, AttributeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        model.train(was_training)
    if not error <= _TOLERANCE:
        return f"its logits differ by {error:.2g} of their spread"
    # A text that is longer than a window is too long to measure with.
    return "" if windows == _windows(model) else "its attention is not told of its sliding windows"


@torch.inference_mode()
def _measured(model: PreTrainedModel) -> tuple[float, set[int | None]]:
    """The largest difference to plain forward passes, and the windows that attention was told."""
    vocabulary = model.config.get_text_config().vocab_size
    draw = torch.Generator().manual_seed(0)

    def some(length: int) -> list[int]:
        return torch.randint(vocabulary, (length,), generator=draw).tolist()

    manual = some(9)
    prompts = [manual + some(7), manual + some(5), some(6)]
    texts = [prompt + some(length) for prompt in prompts for length in (3, 1, 4)]
    found = paths(texts, [len(prompts[place // 3]) for place in range(len(texts))], 4)
    packing = Packing(texts, found, list(found))
    device = model.device
    with reading(model, packing):
        ids, positions = packing.ids.to(device), packing.positions.to(device)
        packed = model(input_ids=ids, position_ids=positions, use_cache=False).logits[0]
    errors, spread = [], packed.std()
    for text, shift in zip(found, packing.shifts, strict=True):
        alone = model(input_ids=torch.tensor([texts[text]], device=device)).logits[0]
        first = found[text][-1].start
        own = packed[shift + first : shift + len(alone)]
        errors.append((own - alone[first:]).abs().max() / spread)
    return float(torch.stack(errors).max()), packing.windows


def _windows(model: PreTrainedModel) -> set[int | None]:
    """The windows of a model's layers, by its config."""
    window = getattr(model.config.get_text_config(), "sliding_window", None)
    kinds = _kinds(model) or [_SLIDING]
    return {window if kind == _SLIDING else None for kind in kinds}


def _kinds(model: PreTrainedModel) -> list[str]:
    return list(getattr(model.config.get_text_config(), "layer_types", None) or ())
