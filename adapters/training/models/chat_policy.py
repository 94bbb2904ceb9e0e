"""A chat model as a policy: it reads the transcript as its own chat template renders it, and acts.

The same class plays before training, after it, and in `toolgym eval --policy PATH_OR_HUB_ID`. What
it returns is the text that the model wrote, without the token that ended the turn and with the tag
of thinking that the prompt opened, as in training. Finding the calls in it is the environment's
work, so every model's habit of writing calls is judged by one parser.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.cache_utils import Cache, DynamicLayer
from transformers.utils.logging import disable_progress_bar

from adapters.training.models.chat_templates import ChatTemplate, with_chat_template
from adapters.training.models.places import check_model
from adapters.training.models.published import place_of
from adapters.training.models.tokenized_examples import (
    context_length,
    needs_calls,
    pad_id,
    stop_ids,
)
from toolgym.calls import opened_thought
from toolgym.errors import ConfigurationError
from toolgym.long_work import reporting
from toolgym.messages import episode_messages
from toolgym.policies import Situation

# Sampling continuations for a batch of token sequences, each with a random stream of its own.
#
# `transformers.generate` draws for the whole batch from one global stream, so what a sequence
# becomes depends on its batch. Here a token is the point where a uniform number of the sequence's
# own stream falls in the cumulative distribution: one sequence and one seed give one continuation,
# in whatever batch (up to rounding: a batch of another width adds in another order, which can turn
# a near tie).


@dataclass(frozen=True)
class Sampling:
    """The settings of sampling.

    Attributes:
        max_new_tokens: Tokens of one continuation at most.
        stop: Tokens that end a continuation; they are part of it.
        pad: The token that fills up short sequences; it is never looked at.
        temperature: 0 takes the likeliest token.
    """

    max_new_tokens: int
    stop: frozenset[int]
    pad: int
    temperature: float = 0.0


@torch.inference_mode()
def continue_all(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    streams: Sequence[random.Random],
) -> list[list[int]]:
    """Continue every prompt until it stops or is as long as it may get.

    Whenever half of the batch has stopped, the other half goes on without it.

    Args:
        model: A causal language model, in evaluation mode for reproducible results.
        prompts: Token ids, none empty; padded on the left to a batch (B, L).
        sampling: How to draw.
        streams: One per prompt; a stream gives one number per token, none when greedy.

    Returns:
        The new token ids of each, the stop token included if it was reached.
    """
    batch = _Batch(model, prompts, sampling.pad)
    continuations: list[list[int]] = [[] for _ in prompts]
    running = set(range(len(prompts)))
    for _ in range(sampling.max_new_tokens):
        own = [streams[i] for i in batch.rows]
        chosen = _choose(batch.logits(), sampling.temperature, own)
        for i, token in zip(batch.rows, chosen, strict=True):
            if i in running:
                continuations[i].append(token)
                running -= {i} if token in sampling.stop else set()
        if not running:
            break
        batch.append(chosen)
        if 2 * len(running) <= len(batch.rows):
            batch.keep(running)
    return continuations


class _Batch:
    """A batch of sequences in the model: its cache, and the next tokens to read.

    Attributes:
        rows: The number of the prompt in each row.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]], pad: int) -> None:
        self.rows = list(range(len(prompts)))
        self._model = model
        self._tokens, self._mask = _pad(prompts, pad, model.device)
        self._positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
        self._cache: Any = None

    def logits(self) -> Tensor:
        """Read what is to be read; what may follow, (B, V)."""
        out = self._model(
            input_ids=self._tokens,
            attention_mask=self._mask,
            position_ids=self._positions,
            past_key_values=self._cache,
            logits_to_keep=1,
            use_cache=True,
        )
        self._cache = out.past_key_values
        logits: Tensor = out.logits[:, -1]
        return logits

    def append(self, chosen: Sequence[int]) -> None:
        """One token more in each row, to be read next."""
        self._tokens = torch.tensor(chosen, device=self._model.device)[:, None]
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(chosen), 1)], dim=1)
        self._positions = self._positions[:, -1:] + 1

    def keep(self, indices: Set[int]) -> None:
        """Drop the rows of all other prompts, where the cache is of a kind that allows it."""
        layers = self._cache.layers if isinstance(self._cache, Cache) else [None]
        if not all(isinstance(layer, DynamicLayer) for layer in layers):
            return
        remaining = [row for row, i in enumerate(self.rows) if i in indices]
        self.rows = [self.rows[row] for row in remaining]
        places = torch.tensor(remaining, device=self._model.device)
        self._tokens, self._mask = self._tokens[places], self._mask[places]
        self._positions = self._positions[places]
        self._cache.batch_select_indices(places)


def _pad(prompts: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens and mask, both (B, L); what is short is padded on the left."""
    width = max(map(len, prompts))
    tokens = [[pad] * (width - len(ids)) + list(ids) for ids in prompts]
    mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts]
    return torch.tensor(tokens, device=device), torch.tensor(mask, device=device)


def _choose(logits: Tensor, temperature: float, streams: Sequence[random.Random]) -> list[int]:
    """One token per row of `logits` (B, V)."""
    if temperature == 0:
        greedy: list[int] = logits.argmax(dim=1).tolist()
        return greedy
    cumulative = torch.softmax(logits.double() / temperature, dim=1).cumsum(dim=1)
    uniform = torch.tensor([[stream.random()] for stream in streams], dtype=torch.float64)
    # Scaled by the last sum, which rounding leaves a hair off 1.
    points = uniform.to(logits.device) * cumulative[:, -1:]
    drawn: list[int] = torch.searchsorted(cumulative, points, right=True).squeeze(1).tolist()
    return [min(token, logits.shape[1] - 1) for token in drawn]


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
        chat_template: In place of the tokenizer's own: `hermes`, `chatml`, or the path of a Jinja
            file (`adapters.training.models.chat_templates`). Model and tokenizer stay as they are.

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
        chat_template: str | ChatTemplate | None = None,
    ) -> None:
        if temperature < 0 or max_new_tokens < 1 or batch < 1:
            raise ConfigurationError(
                "temperature must not be negative, max_new_tokens and batch at least 1, got"
                f" {temperature=}, {max_new_tokens=}, {batch=}."
            )
        if chat_template is not None:
            tokenizer = with_chat_template(tokenizer, chat_template)
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        self._needs_calls = needs_calls(tokenizer)
        self.batch = batch
        self.seed = seed
        self.sampling = Sampling(
            max_new_tokens, stop_ids(model, tokenizer), pad_id(tokenizer), temperature
        )

    def act(self, situations: Sequence[Situation]) -> list[str]:
        """The model's text in each situation, in order."""
        prompts = [self._prompt(situation) for situation in situations]
        room = context_length(self.model) - self.sampling.max_new_tokens
        fitting = [i for i, prompt in enumerate(prompts) if len(prompt) <= room]
        fitting.sort(key=lambda i: len(prompts[i]))  # little padding where lengths are alike
        texts = [""] * len(situations)
        was_training = self.model.training
        self.model.train(False)
        for start in range(0, len(fitting), self.batch):
            chunk = fitting[start : start + self.batch]
            streams = [self._stream(situations[i]) for i in chunk]
            new = continue_all(self.model, [prompts[i] for i in chunk], self.sampling, streams)
            for i, tokens in zip(chunk, new, strict=True):
                texts[i] = self._opening(prompts[i]) + self._text(tokens)
        self.model.train(was_training)
        return texts

    def _prompt(self, situation: Situation) -> list[int]:
        tools: list[Any] = situation.env.tool_schemas()
        tokens: Any = self.tokenizer.apply_chat_template(
            episode_messages(situation.env, as_calls=self._needs_calls),
            tools=tools,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
        )
        return list(tokens)

    def _stream(self, situation: Situation) -> random.Random:
        turn = len(situation.env.episode.turns)
        return random.Random(f"toolgym-chat-{self.seed}-{situation.seed}-{turn}")

    def _opening(self, prompt: list[int]) -> str:
        """The tag of thinking that the prompt ends with: in a thought nothing is called."""
        return opened_thought(str(self.tokenizer.decode(prompt[-16:], skip_special_tokens=False)))

    def _text(self, tokens: list[int]) -> str:
        """The text without the token that ended the turn; call markers stay, whatever they are."""
        ended = bool(tokens) and tokens[-1] in self.sampling.stop
        written = tokens[:-1] if ended else tokens
        return str(self.tokenizer.decode(written, skip_special_tokens=False))


def load(
    path_or_hub_id: str,
    *,
    seed: int = 0,
    chat_template: str | ChatTemplate | None = None,
    **options: Any,
) -> ChatModelPolicy:
    """A policy from a checkpoint folder or from the Hugging Face hub.

    Args:
        path_or_hub_id: A folder with model and tokenizer, such as `runs/NAME/checkpoints/final`,
            or a name on the hub.
        chat_template: As for `load_model`.
        options: For `ChatModelPolicy`.

    Raises:
        ConfigurationError: There is no such model, or it has no chat template.
    """
    model, tokenizer = load_model(path_or_hub_id, chat_template=chat_template)
    return ChatModelPolicy(model, tokenizer, name=path_or_hub_id, seed=seed, **options)


def load_model(
    path_or_hub_id: str,
    *,
    for_training: bool = False,
    dtype: str = "float32",
    chat_template: str | ChatTemplate | None = None,
    device: str | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Model and tokenizer from a folder or the hub.

    Args:
        path_or_hub_id: Which; the name of a published model stands for its folder in the cache.
        for_training: In `dtype` then, and else in that of the file.
        dtype: `float32`, since in half precision small updates are rounded away; `bfloat16` halves
            the memory, for adapters.
        chat_template: In place of the tokenizer's own: `hermes`, `chatml`, or the path of a Jinja
            file (`adapters.training.models.chat_templates`); None keeps that.
        device: Where to put the model; None: on the GPU if there is one, else on the CPU.

    Raises:
        ConfigurationError: There is no such model or template, or the model has none.
    """
    check_model(path_or_hub_id)
    if isinstance(chat_template, str):
        chat_template = ChatTemplate.named(chat_template)  # before the weights are read
    named = place_of(path_or_hub_id)
    place = Path(named).expanduser()
    source = str(place) if place.exists() else named
    precision: Any = getattr(torch, dtype) if for_training else "auto"
    disable_progress_bar()
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(logging.ERROR)  # each retry is a warning
    try:
        with reporting(f"loading {Path(named).name}"):
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(source)
            model = AutoModelForCausalLM.from_pretrained(source, dtype=precision)
    except Exception as problem:  # damaged files raise whatever their readers stumble over
        raise ConfigurationError(_cannot_load(path_or_hub_id, problem)) from problem
    finally:
        hub.setLevel(level)
    if chat_template is not None:
        tokenizer = with_chat_template(tokenizer, chat_template, model)
    if not tokenizer.chat_template:
        raise ConfigurationError(
            f"{path_or_hub_id} has no chat template, so it cannot be shown tools: add"
            ' --chat-template hermes (in Python chat_template="hermes"), which fits any model, or'
            " take a chat model (an -Instruct version)."
        )
    target: Any = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return model.to(target), tokenizer


def _cannot_load(name: str, problem: Exception) -> str:
    first_line = str(problem).strip().splitlines()[0] if str(problem).strip() else repr(problem)
    return (
        f"The model {name} cannot be loaded: {first_line} If it is on the hub, check the name and"
        " the network (HF_HUB_OFFLINE=1 allows only what was downloaded before); else pass a"
        " folder."
    )
