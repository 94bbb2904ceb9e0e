"""A chat model as a policy: it reads the transcript as its own chat template renders it, and acts.

The same class plays before training, after it, and in `toolgym eval --policy PATH_OR_HUB_ID`. What
it returns is the text that the model wrote, untouched but for the token that ends a turn; finding
the calls in it is the environment's work, so every model's habit of writing calls is judged by one
parser.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from adapters.training.models.generation import Sampling, continue_all
from adapters.training.models.special_tokens import context_length, pad_id, stop_ids
from toolgym.errors import ConfigurationError
from toolgym.messages import episode_messages
from toolgym.policies import Situation


class ChatModelPolicy:
    """A causal language model with a chat template.

    Args:
        model: The model; it is put into evaluation mode for each turn and then back.
        tokenizer: Its tokenizer, with a chat template that can render tools.
        name: What it is called in reports.
        temperature: 0 is greedy.
        max_new_tokens: Of one turn; a turn that is cut off there is no call, or a broken one.
        batch: Episodes in one forward pass at most.
        seed: With the situation's own seed and its turn, it fixes what is drawn.

    A transcript that leaves no room for a turn in the model's context gets an empty action.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "model",
        temperature: float = 0.0,
        max_new_tokens: int = 256,
        batch: int = 64,
        seed: int = 0,
    ) -> None:
        if temperature < 0 or max_new_tokens < 1 or batch < 1:
            raise ConfigurationError(
                "temperature must not be negative, max_new_tokens and batch at least 1, got"
                f" {temperature=}, {max_new_tokens=}, {batch=}."
            )
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        self.batch = batch
        self.seed = seed
        self.sampling = Sampling(
            max_new_tokens, stop_ids(model, tokenizer), pad_id(tokenizer), temperature
        )

    def act(self, situations: Sequence[Situation]) -> list[str]:
        """What the model says in each situation, in order."""
        prompts = [self._prompt(situation) for situation in situations]
        room = context_length(self.model) - self.sampling.max_new_tokens
        fitting = [i for i, prompt in enumerate(prompts) if len(prompt) <= room]
        fitting.sort(key=lambda i: len(prompts[i]))  # little padding where lengths are alike
        said = [""] * len(situations)
        was_training = self.model.training
        self.model.train(False)
        for start in range(0, len(fitting), self.batch):
            chunk = fitting[start : start + self.batch]
            streams = [self._stream(situations[i]) for i in chunk]
            new = continue_all(self.model, [prompts[i] for i in chunk], self.sampling, streams)
            for i, tokens in zip(chunk, new, strict=True):
                said[i] = self._text(tokens)
        self.model.train(was_training)
        return said

    def _prompt(self, situation: Situation) -> list[int]:
        tools: list[Any] = situation.env.tool_schemas()
        tokens: Any = self.tokenizer.apply_chat_template(
            episode_messages(situation.env),
            tools=tools,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
        )
        return list(tokens)

    def _stream(self, situation: Situation) -> random.Random:
        turn = len(situation.env.episode.turns)
        return random.Random(f"toolgym-chat-{self.seed}-{situation.seed}-{turn}")

    def _text(self, tokens: list[int]) -> str:
        """The text without the token that ended the turn; call markers stay, whatever they are."""
        ended = bool(tokens) and tokens[-1] in self.sampling.stop
        kept = tokens[:-1] if ended else tokens
        return str(self.tokenizer.decode(kept, skip_special_tokens=False))


def load(path_or_hub_id: str, *, seed: int = 0, **options: Any) -> ChatModelPolicy:
    """A policy from a checkpoint folder or from the Hugging Face hub.

    Args:
        path_or_hub_id: A folder with model and tokenizer, such as `runs/NAME/checkpoints/final`,
            or a name on the hub.
        seed: For sampling.
        options: For `ChatModelPolicy`.

    Raises:
        ConfigurationError: There is no such model, or it has no chat template.
    """
    model, tokenizer = load_model(path_or_hub_id)
    return ChatModelPolicy(model, tokenizer, name=path_or_hub_id, seed=seed, **options)


def load_model(
    path_or_hub_id: str, *, for_training: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer from a folder or the hub, on the accelerator if there is one.

    Args:
        path_or_hub_id: Which.
        for_training: In float32 then, since in half precision small updates are rounded away.

    Raises:
        ConfigurationError: There is no such model, or it has no chat template.
    """
    looks_like_path = path_or_hub_id.startswith((".", "/", "~")) or path_or_hub_id.count("/") != 1
    place = Path(path_or_hub_id).expanduser()
    if place.exists():
        _check_folder(place)
    elif looks_like_path:
        raise ConfigurationError(
            f"There is no model folder {path_or_hub_id}; name one that has a config.json, such as"
            " runs/NAME/checkpoints/final, or a model of the hub such as Qwen/Qwen3-0.6B."
        )
    source = str(place) if place.exists() else path_or_hub_id
    dtype: Any = torch.float32 if for_training else "auto"
    disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # each retry is a warning
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    except (OSError, ValueError) as problem:
        raise ConfigurationError(_cannot_load(path_or_hub_id, problem)) from problem
    if not tokenizer.chat_template:
        raise ConfigurationError(
            f"{path_or_hub_id} has no chat template, so it cannot be shown tools; take a chat model"
            " (an -Instruct version), or set tokenizer.chat_template and save it."
        )
    device: Any = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device), tokenizer


def _check_folder(place: Path) -> None:
    if not (place / "config.json").is_file() or not any(place.glob("tokenizer*")):
        inside = sorted(
            str(found.parent.relative_to(place)) for found in place.glob("**/model.safetensors")
        )
        cure = f" It holds the models {', '.join(inside)}: name one of them." if inside else ""
        raise ConfigurationError(
            f"{place} is no model folder: it needs config.json, weights and a tokenizer.{cure}"
        )


def _cannot_load(name: str, problem: Exception) -> str:
    first_line = str(problem).strip().splitlines()[0] if str(problem).strip() else repr(problem)
    return (
        f"The model {name} cannot be loaded: {first_line} If it is on the hub, check the name and"
        " the network (HF_HUB_OFFLINE=1 allows only what was downloaded before); else pass a"
        " folder."
    )
