"""The start of a training of the tiny model: it has imitated demonstrations, some padded.

Nothing pads them here but what did it to the claim's: they go through `datasets` as a list of rows,
whose Arrow types give every call the arguments of all tools, null where it had none. The others
stay as `sft_dataset` exports them, with the feature type `Json`, which pads nothing.

The model has a quarter of the weights of `toolgym train`'s, and learns in many small steps, which
at this size gets further in the same time. A start still takes half a minute, and is a matter of a
seed, so it is kept as a checkpoint in the folder of `starts.remembered_in`, where all units
that begin with it find it.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from adapters.lab.code_hash import code_hash
from adapters.lab.starts import remembered_folder
from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import mistakes, null_padded, train_tokenizer
from adapters.training.models.chat_policy import load_model
from adapters.training.models.demonstrations import Habit, NoisyDemonstrator
from adapters.training.models.supervised import WarmupSettings, warm_up
from adapters.training.models.tokenized_examples import examples_of
from adapters.trl import sft_dataset
from toolgym import registration
from toolgym.env import ToolEnv
from toolgym.messages import Message

ENVIRONMENT: Final = "sqlgym/Explore-v0"
TRAINING: Final = {"dataset": "tiny", "split": "train"}
_PADDED, _MISTAKEN = 300, 20  # transcripts that only the tokenizer sees, as in `toolgym train`

Pair = tuple[PreTrainedModel, PreTrainedTokenizerBase]
Transcript = list[Message]


@dataclass(frozen=True)
class TinyStart:
    """The settings of a start.

    Attributes:
        padded: Share of the demonstrations that come from a data set that Arrow has padded.
        demonstrations: Transcripts, of different questions.
        guesses: Share of them that answer with a random number as soon as a query is due. That is
            the habit to be lost in training; the others ask as the expert does.
        steps: Of imitation.
        batch: Transcripts in one.
        learning_rate: At its highest.
        hidden: Width of the model; half of that of `toolgym train`.
    """

    padded: float = 0.0
    demonstrations: int = 1200
    guesses: float = 0.3
    steps: int = 1600
    batch: int = 4
    learning_rate: float = 8e-3
    hidden: int = 64


def started(start: TinyStart, seed: int) -> Pair:
    """A model of its own that has imitated, and its tokenizer."""
    folder = remembered_folder()
    if folder is None:
        return _made(start, seed)
    code = code_hash(_made)
    text = f"{code} {sorted(asdict(start).items())} {seed}"
    place = folder / f"tiny-{seed}-{sha256(text.encode()).hexdigest()[:16]}"
    if not place.is_dir():
        _keep(_made(start, seed), place)
    return load_model(str(place), for_training=True)


def _keep(pair: Pair, place: Path) -> None:
    """Write a checkpoint whole or not at all; of two processes that do, one is in time."""
    disable_progress_bar()  # a bar for every file that is saved
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        fresh = Path(scratch) / "checkpoint"
        for part in pair:
            part.save_pretrained(fresh)
        try:
            fresh.rename(place)
        except OSError:
            if not place.is_dir():
                raise


def _made(start: TinyStart, seed: int) -> Pair:
    env = registration.make(ENVIRONMENT, **TRAINING)
    given = exported(start.demonstrations, seed, start.guesses)
    tokenizer = _tokenizer(env, given)
    model = build_model(tokenizer, seed, _size(start.hidden))
    random.Random(f"toolgym-lab-padded-{seed}").shuffle(given)
    some = round(start.padded * len(given))
    shown, tools = [*padded(given[:some]), *given[some:]], env.tool_schemas()
    examples = [one for each in shown for one in examples_of(each, tools, tokenizer)]
    ramp, rate = min(20, start.steps // 5), start.learning_rate
    warm_up(model, examples, WarmupSettings(start.steps, start.batch, rate, ramp, seed))
    return model, tokenizer


def _size(hidden: int) -> TinySize:
    return TinySize(hidden, heads=hidden // 32, feed_forward=3 * hidden)


def _tokenizer(env: ToolEnv[Any], given: Sequence[Transcript]) -> PreTrainedTokenizerBase:
    """One tokenizer for every share of padding, so that texts cost the same in all arms."""
    nulls = [null_padded(each, env.tool_schemas()) for each in given[:_PADDED]]
    ids = env.tasks.first_playable(_MISTAKEN).ids
    return train_tokenizer([*given, *nulls, *mistakes(env, ids)])


def exported(n: int, seed: int, guesses: float) -> list[Transcript]:
    """Demonstrations as the export that pads nothing gives them, each answer as a text.

    The claim's tool took a text, and a column that Arrow describes cannot hold texts and numbers.
    """
    habits: dict[Habit, float] = {"careful": 1 - guesses, "guess": guesses}
    policy = NoisyDemonstrator(seed, habits, stumbles=0.0)
    rows = sft_dataset(ENVIRONMENT, n=n, seed=seed, policy=policy, **TRAINING)
    transcripts: list[Transcript] = [list(row["messages"]) for row in rows]
    for call in (c for t in transcripts for m in t for c in m.get("tool_calls") or []):
        given = call["function"]["arguments"]
        if "value" in given:
            given["value"] = str(given["value"])
    return transcripts


def padded(transcripts: Sequence[Transcript]) -> list[Transcript]:
    """The same as they come back from a data set whose types Arrow was left to find.

    Arguments keep their nulls. Those beside `role` and `content`, which print nothing, go.
    """
    from datasets import Dataset

    if not transcripts:
        return []
    rows = Dataset.from_list([{"messages": each} for each in transcripts])
    return [[_without_nulls(message) for message in row["messages"]] for row in rows]


def _without_nulls(message: Message) -> Message:
    return {key: value for key, value in message.items() if value is not None}
