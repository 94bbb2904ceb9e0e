"""Bytes a parameter of the reference trainer and of the warm-up, measured.

    python benchmarks/trainer_memory.py [--layers 8 24] [--hidden 512] [--mapped]

Random Llamas of two sizes, which differ in their layers only, make an update each in a process of
their own: the reference's pass, a forward and backward pass over few tokens (with gradient
checkpointing, so that hardly anything but weights grows with the model), the gradient's norm, the
step, a second such update, a checkpoint, and going back to it. The slope of peak memory (what
`getrusage` calls ru_maxrss, files that are mapped included) over the parameters is the bytes a
parameter. PyTorch itself, the activations and the embedding's own gradients are in both sizes.

Matrices of small models lie in glibc's heap, which keeps holes: that is a tenth more. Those above
32 MiB are mapped one by one; `--mapped` has the small ones treated so, as in a large model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

RUNS: Final[dict[str, dict[str, Any]]] = {
    "exact, float32": {"memory": "exact", "dtype": "float32"},
    "exact, bfloat16": {"memory": "exact", "dtype": "bfloat16"},
    "half, float32": {"memory": "half", "dtype": "float32"},
    "half, bfloat16": {"memory": "half", "dtype": "bfloat16"},
    "least, bfloat16": {"memory": "least", "dtype": "bfloat16"},
    "LoRA, bfloat16": {"memory": "half", "dtype": "bfloat16", "lora": 16},
    "warm-up, half": {"memory": "half", "dtype": "bfloat16", "is_warmup": True},
    "warm-up, least": {"memory": "least", "dtype": "bfloat16", "is_warmup": True},
}
"""The runs by name; the reference trainer's unless they say otherwise."""
TOKENS: Final = 16
VOCABULARY: Final = 2048


def slope(
    run: dict[str, Any], layers: tuple[int, int], hidden: int, *, is_mapped: bool = True
) -> float:
    """Bytes of peak memory for each parameter that the larger model has more."""
    (few, small), (many, large) = (measured(run, each, hidden, is_mapped) for each in layers)
    return (large - small) / (many - few)


def measured(run: dict[str, Any], layers: int, hidden: int, is_mapped: bool) -> tuple[int, int]:
    """Parameters, and bytes of peak memory, of a process that makes a run."""
    asked = json.dumps({**run, "layers": layers, "hidden": hidden})
    command = [sys.executable, __file__, "--one", asked]
    threshold = {"MALLOC_MMAP_THRESHOLD_": str(2**16)} if is_mapped else {}
    environment = {**os.environ, **threshold}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    parameters, peak = json.loads(done.stdout.splitlines()[-1])
    return int(parameters), int(peak)


def one(asked: dict[str, Any]) -> None:
    """Make a run in this process, and print parameters and peak memory."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from adapters.training.runs.progress import peak_memory

    torch.set_num_threads(1)
    hidden, dtype = asked.pop("hidden"), getattr(torch, asked["dtype"])
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=3 * hidden,
        num_hidden_layers=asked.pop("layers"),
        num_attention_heads=hidden // 64,
        num_key_value_heads=hidden // 64,
        tie_word_embeddings=True,
    )
    family: Any = LlamaForCausalLM
    model = family._from_config(config, dtype=dtype)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    with tempfile.TemporaryDirectory() as folder:
        train = _imitate if asked.pop("is_warmup", False) else _reinforce
        train(model, asked, Path(folder))
    print(json.dumps([parameters, peak_memory(torch.device("cpu")) * 2**20]))


def _imitate(model: Any, asked: dict[str, Any], folder: Path) -> None:
    from adapters.training.models.supervised import WarmupSettings, warm_up
    from adapters.training.models.tokenized_examples import Example

    ids = tuple(range(3, TOKENS))
    example = Example(ids, (False,) * 8 + (True,) * (len(ids) - 8))
    how = {"memory": asked["memory"], "gradient_checkpointing": True, "tokens_per_pass": TOKENS}
    warm_up(model, [example], WarmupSettings(2, 2, 1e-5, **how))


def _reinforce(model: Any, asked: dict[str, Any], folder: Path) -> None:
    """What `ReferenceTrainer` does between rollouts."""

    from adapters.reference.checkpoint import Checkpoints
    from adapters.reference.config import reference_config
    from adapters.reference.kl_reference import CopiedReference, Reference, StoredReference
    from adapters.reference.learner import Learner
    from adapters.reference.optimizer import Optimizer, make_ready
    from adapters.training.models.low_rank import Adapter, lora_config

    rank = asked.pop("lora", 0)
    config = reference_config({**asked, "gradient_checkpointing": True, "tokens_per_pass": TOKENS})
    make_ready(model, config)
    adapter = Adapter(model, lora_config(rank, 32, "all-linear")) if rank else None
    reference: Reference
    if adapter is not None:
        reference = adapter
    elif config.memory == "exact":
        reference = CopiedReference(model)
    else:
        reference = StoredReference(model, folder / "reference.safetensors")
    learner, optimizer = Learner(model, reference, config), Optimizer(model, config)
    batch, advantages = _batch()
    for _ in range(2):
        of_reference = learner.reference_log_probs(batch)
        learner.accumulate(batch, advantages, None, of_reference)
        optimizer.step(optimizer.rate(), optimizer.gradient()[0])
    checkpoints, trained = Checkpoints(folder, keep=1), adapter or model
    state = optimizer.state_dict()
    checkpoints.save(1, trained, _NoTokenizer(), state["tensors"], {})  # type: ignore[arg-type]
    saved = checkpoints.load_weights(1, trained)
    optimizer.load_state_dict({"tensors": saved, "updates": state["updates"]})


class _NoTokenizer:
    def save_pretrained(self, folder: Path) -> None:
        """There is none."""


def _batch() -> tuple[Any, Any]:
    import torch

    from adapters.reference.rollout import Batch, Ending, Request, Rollout

    length = TOKENS // 2
    tokens = list(range(3, 3 + length))
    rollouts = [
        Rollout(
            Request("t", 0, str(number)),
            list(range(3, TOKENS - length)),
            tokens,
            [1] * length,
            [-7.0] * length,
            [(0, length)],
            [0.5],
            0.5,
            Ending.ANSWERED,
            None,
        )
        for number in range(2)
    ]
    return Batch.of(rollouts, [True, True]), torch.tensor([1.0, -1.0])


def main() -> None:
    """Measure, and print the rows of a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--layers", type=int, nargs=2, default=(8, 24))
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--mapped", action="store_true")
    parser.add_argument("--runs", nargs="*", default=list(RUNS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(json.loads(options.one))
    print("| run | bytes a parameter |\n|---|---|")
    for name in options.runs:
        sizes = tuple(options.layers)
        found = slope(RUNS[name], sizes, options.hidden, is_mapped=options.mapped)
        print(f"| {name} | {found:.1f} |", flush=True)


if __name__ == "__main__":
    main()
