"""Whether the machine has what a training will take, before the training finds out.

The need is arithmetic (`adapters.training.models.memory_needs`); what there is, is asked of the GPU
if there is one, and else of the operating system. Weights, moments and gradient are certain, so
where they alone are too much, training is refused. Activations and caches are counted for passes
and rollouts that are as long as the settings allow, so of those there is only a warning.

It is for the reference trainer and pretrained models: TRL's settings say too little of its memory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import torch

from adapters.training.models.memory_needs import Load, Needs, needs_of, shape_of
from adapters.training.models.weights import multiplies_bfloat16
from adapters.training.preflight.judge import Finding
from adapters.training.runs.settings import TrainSettings

_DEFAULTS: Final = {"tokens_per_pass": 8192, "at_once": None, "gradient_checkpointing": False}
"""Of the reference trainer."""
_BETA: Final = 0.01  # KL coefficient of its losses
_ROW: Final = 8192  # tokens of a pass of imitation, where nothing else is set
_PROMPT: Final = 1024  # tokens, for want of better
_GROUP: Final = Path("/sys/fs/cgroup")


def memory_needs(settings: TrainSettings, config: Any, parameters: int = 0) -> Needs | None:
    """What a training needs in its hungriest phase; None where that cannot be told.

    Args:
        config: Of the model.
        parameters: Of the model; 0: by its config.
    """
    shape = shape_of(config, parameters)
    if shape is None or settings.is_tiny or settings.trainer != "reference":
        return None
    options = {**_DEFAULTS, **settings.trainer_options}
    loss = options.get("loss")
    beta = loss.get("beta", _BETA) if isinstance(loss, dict) else _BETA
    device = "cuda" if torch.cuda.is_available() else "cpu"
    at_once = int(options["at_once"] or (256 if device == "cuda" else 64))
    rollouts = settings.group_size * settings.prompts
    tokens = _PROMPT + settings.max_completion_length
    load = Load(
        dtype=settings.dtype,
        adapter_rank=settings.lora_rank if settings.lora else 0,
        has_reference=beta > 0,
        tokens_per_pass=min(max(int(options["tokens_per_pass"]), tokens), rollouts * tokens),
        has_checkpointing=bool(options["gradient_checkpointing"]),
        at_once=min(at_once, rollouts),
        rollout_tokens=tokens,
        device=device,
    )
    needed = needs_of(shape, load)
    if settings.lora and settings.sft_steps and not settings.has_adapter_from_start:
        return max(needed, needs_of(shape, _of_full_warm_up(load, settings)), key=_total)
    return needed


def _of_full_warm_up(load: Load, settings: TrainSettings) -> Load:
    """The load of imitation that trains all weights, before an adapter is made."""
    tokens = settings.sft_tokens_per_pass or _ROW
    return replace(load, adapter_rank=0, has_reference=False, tokens_per_pass=tokens, at_once=0)


def _total(needs: Needs) -> float:
    return needs.total


def free_memory() -> float | None:
    """Bytes that a process can have, on the GPU if there is one; None where nobody says."""
    if torch.cuda.is_available():
        return float(torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved())
    sizes = [_available(), _left_of_the_group()]
    return min((size for size in sizes if size is not None), default=None)


def _available() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return 1024 * float(found[0]) if found else None


def _left_of_the_group() -> float | None:
    """What a container may still take."""
    try:
        limit = float((_GROUP / "memory.max").read_text())
        return limit - float((_GROUP / "memory.current").read_text())
    except (OSError, ValueError):  # no container, or no limit
        return None


def check_memory(needs: Needs | None, held: float = 0.0) -> list[Finding]:
    """Findings where the machine has less than is needed.

    Args:
        held: Bytes of the need that this process has taken already.
    """
    free = free_memory()
    if needs is None or free is None or needs.total <= free + held:
        return []
    is_hopeless = needs.certain > free + held
    reason = f"{needs.sentence()} This machine has {(free + held) / 1e9:.1f} GB free."
    advice = (
        "Lower --set tokens_per_pass or --set at_once, add --set gradient_checkpointing=true, or"
        " train an adapter: --lora."
    )
    return [Finding("memory", "no-go" if is_hopeless else "warn", reason, advice)]


def check_dtype(dtype: str) -> list[Finding]:
    """A finding where the machine has no instructions for what a model computes in."""
    if dtype != "bfloat16" or multiplies_bfloat16():
        return []
    reason = (
        "The model computes in bfloat16, which this machine has no instructions for: products of"
        " matrices can take fifty times as long as in float32."
    )
    return [Finding("dtype", "warn", reason, "Use --set dtype=auto, or --set dtype=float32.")]
