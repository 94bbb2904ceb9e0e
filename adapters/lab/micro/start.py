"""The start of every training of the micro-model: it has imitated workflows, and some prose.

A start is a matter of a second and of a seed, and dozens of units share it. So it is remembered
while the process lives, and where `starts` has been told of a folder on disk as well, under a name
that changes with whatever could change its weights.
"""

from __future__ import annotations

import functools
import io
import random
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from adapters.lab.code_hash import code_hash
from adapters.lab.micro.model import PROMPT, MicroModel
from adapters.lab.micro.tokens import (
    ITEMS,
    KINDS,
    NUMBERS,
    PAD,
    PROSE_TEXTS,
    WORKFLOWS,
    prompt_tokens,
    tokens_of,
)
from adapters.lab.starts import remembered_folder
from toolgym.runs.files import replace_file

BATCH: Final = 64
RATE: Final = 4e-3
STEPS: Final = 150


def started(
    seed: int, prose: float = 0.05, steps: int = STEPS, shown: int | None = None
) -> MicroModel:
    """A model of its own that has imitated.

    Args:
        seed: Of its weights, and of what it is shown.
        prose: Share of prose in what it is shown.
        steps: Of imitation, 64 texts each.
        shown: So many demonstrations are shown again and again; None: each time others.
    """
    model = MicroModel(seed)
    model.load_state_dict(torch.load(io.BytesIO(_weights(seed, prose, steps, shown))))
    return model


@functools.lru_cache(maxsize=8)
def _weights(seed: int, prose: float, steps: int, shown: int | None) -> bytes:
    folder = remembered_folder()
    if folder is None:
        return _imitated(seed, prose, steps, shown)
    code = code_hash(_imitated)[:12]
    name = f"{seed}-{prose:g}-{steps}-{shown or 'all'}-{code}.pt"
    file = folder / name
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # Two processes may write the same start: each its own file, and the same bytes.
        replace_file(file, [_imitated(seed, prose, steps, shown)])
    return file.read_bytes()


def _imitated(seed: int, prose: float, steps: int, shown: int | None) -> bytes:
    """The weights after imitation."""
    model, draw = MicroModel(seed), random.Random(f"toolgym-lab-start-{seed}")
    few = None if shown is None else [_demonstration(draw, prose) for _ in range(shown)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0)
    for step in range(steps):
        rate = min(1.0, (step + 1) / 10) * (1 - 0.9 * step / steps)
        optimizer.param_groups[0]["lr"] = RATE * rate
        tokens = _batch(
            [_demonstration(draw, prose) if few is None else draw.choice(few) for _ in range(BATCH)]
        )
        logits = model(tokens[:, :-1])[0][:, PROMPT - 1 :]
        loss = cross_entropy(
            logits.flatten(0, 1), tokens[:, PROMPT:].flatten(), ignore_index=NUMBERS[PAD]
        )
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.getvalue()


def _demonstration(draw: random.Random, prose: float) -> list[int]:
    """A prompt and what follows it; the workflow does not depend on the task."""
    chosen = draw.choices(list(WORKFLOWS), weights=list(WORKFLOWS.values()))[0]
    text = draw.choice(PROSE_TEXTS) if draw.random() < prose else chosen
    return prompt_tokens(draw.randrange(len(KINDS) * ITEMS)) + tokens_of(text)


def _batch(rows: list[list[int]]) -> Tensor:
    """Texts as one table, [N, T], padded."""
    longest = max(map(len, rows))
    return torch.tensor([row + [NUMBERS[PAD]] * (longest - len(row)) for row in rows])
