"""Null arguments: strict tools refuse every call, and the model cannot learn.

A tiny model learns from padded demonstrations on `sqlgym/Explore-v0`: each call has the arguments
of all tools, with null for those that it does not use. Strict tools refuse such a call, as a Python
function raises a TypeError. All rollouts of a group then have the same reward, and the gradient is
0. Lenient tools drop the nulls. It requires the extra `train`.

    python examples/lab/null_wall.py
    python examples/lab/null_wall.py --updates 50 --imitation 1600
"""

from __future__ import annotations

import copy
import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from tables import arguments, compare
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from adapters.reference.train import ReferenceTrainer
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import null_padded, train_tokenizer
from adapters.training.guards.config import GUARD_NAMES
from adapters.training.models.demonstrations import NoisyDemonstrator
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import examples_of
from adapters.training.settings import GrpoSettings
from adapters.trl import sft_dataset
from toolgym import registration

ENVIRONMENT: Final = "sqlgym/Explore-v0"
COSTS: Final = dict.fromkeys(("step", "repeat", "failed_call", "repaired_call"), 0.0)
TASKS: Final[Mapping[str, Any]] = {"dataset": "tiny", "rewards": COSTS, "step_limit": 6}
"""Rewards depend only on the outcome, as in the run that failed this way."""
HABITS: Final = {"careful": 0.7, "guess": 0.3}
"""Shares of the behaviors in demonstrations. GRPO can unlearn guessing."""
ENDS: Final = 5
ARMS: Final[Mapping[str, str]] = {"strict tools": "strict", "lenient tools": "lenient"}
COLUMNS: Final = {
    "refused": "calls refused",
    "equal": "groups with equal rewards",
    "gradient": "largest gradient",
    "moved": "largest change of a weight",
    "first": f"reward, first {ENDS} steps",
    "last": f"reward, last {ENDS} steps",
}


@functools.cache
def imitated(seed: int, steps: int) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a tiny model that was trained on padded calls, and its tokenizer."""
    policy = NoisyDemonstrator(seed, HABITS)
    rows = sft_dataset(ENVIRONMENT, n=600, seed=seed, policy=policy, dataset="tiny")
    tools = registration.make(ENVIRONMENT, **TASKS).tool_schemas()
    transcripts = [null_padded(row["messages"], tools) for row in rows]
    tokenizer = train_tokenizer([*transcripts, *(row["messages"] for row in rows)])
    model = build_model(tokenizer, seed, TinySize(hidden=64, heads=2, feed_forward=192))
    examples = [one for each in transcripts for one in examples_of(each, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(steps, 4, 8e-3, 20, seed))
    return model, tokenizer


def mean(history: Sequence[Mapping[str, float]], key: str) -> float:
    """Return the mean of a metric over steps."""
    return sum(step[key] for step in history) / len(history)


def run(parsing: str, seed: int) -> dict[str, float]:
    """Train once and return the numbers of the row."""
    start, tokenizer = imitated(seed, given.imitation)
    model, history = copy.deepcopy(start), list[Mapping[str, float]]()
    config = {
        "steps": given.updates,
        "seed": seed,
        "group_size": 8,
        "prompts": 4,
        "max_completion_length": 256,
        "max_draws": None,
        "advantages": "group_normalized",
        "learn_from_unfinished": True,
        "loss": "grpo",
        "beta": 0.0,
        "learning_rate": 4e-4,
        "guards": {"actions": dict.fromkeys(GUARD_NAMES, ())},  # off, to show the failure
    }
    with tempfile.TemporaryDirectory() as folder:
        trainer = ReferenceTrainer(
            model,
            tokenizer,
            ENVIRONMENT,
            Path(folder),
            GrpoSettings.model_validate(config),
            env_kwargs={**TASKS, "parsing": parsing},
            on_step=lambda step, metrics, episodes: history.append(metrics),
        )
        trainer.train()
    weights = zip(model.parameters(), start.parameters(), strict=True)
    return {
        "refused": mean(history, "tool_failures"),
        "equal": mean(history, "zero_variance_groups"),
        "gradient": max(step["grad_norm"] for step in history),
        "moved": max(float((now - then).detach().abs().max()) for now, then in weights),
        "first": mean(history[:ENDS], "reward"),
        "last": mean(history[-ENDS:], "reward"),
    }


if __name__ == "__main__":
    disable_progress_bar()
    torch.set_num_threads(1)  # more threads are slower at this size
    given = arguments(__doc__, seeds=3, updates=20, imitation=1000)
    compare(ARMS, run, COLUMNS, given.seeds)
