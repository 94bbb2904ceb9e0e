"""A policy for chat models, whose prompts are rendered with the model's chat template.

`ChatModelPolicy` plays the episodes of `toolgym eval --policy PATH_OR_HUB_ID` and of the
evaluations before and after training. Each action is the text that the model generated, without the
token that ended the turn. If the prompt opened a thinking tag, the action includes this tag, as in
training. The environment parses the calls in the text, so the same parser is used for all models.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from adapters.training.models.chat_templates import ChatTemplate, with_chat_template
from adapters.training.models.published import check_model, place_of
from adapters.training.models.tokenized_examples import needs_calls
from adapters.training.models.weights import fast_dtype
from toolgym import generation
from toolgym.calls import opened_thought
from toolgym.errors import ConfigurationError
from toolgym.generation import Engine, Generation, context_length, stop_ids
from toolgym.long_work import reporting
from toolgym.messages import episode_messages
from toolgym.policies import Situation


class ChatModelPolicy:
    """A policy that generates its actions with a causal language model and a chat template.

    Args:
        model: The model, which is put into evaluation mode while it generates.
        tokenizer: Its tokenizer, with a chat template that can render tools.
        name: Name of the policy in reports.
        temperature: Sampling temperature; 0 means greedy decoding.
        max_new_tokens: Maximum number of tokens of one turn. Longer turns are cut off.
        batch: Maximum number of episodes in one forward pass.
        seed: Seed of sampling. The seed is combined with the seed of the situation and the turn
            number.

    The action is empty if the transcript leaves no room for another turn in the model's context.
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
                "temperature must be at least 0, and max_new_tokens and batch at least 1, got"
                f" {temperature=}, {max_new_tokens=}, {batch=}."
            )
        self.name = name
        self.model = model
        self.tokenizer = tokenizer
        self._needs_calls = needs_calls(tokenizer)
        self._seed, self._temperature, self._max_new_tokens = seed, temperature, max_new_tokens
        self._stop = stop_ids(model, tokenizer)
        self._engine = Engine(model, stop=self._stop, slots=batch)

    def act(self, situations: Sequence[Situation]) -> list[str]:
        """Return the text that the model generates in each situation, in order."""
        turns = []
        for situation in situations:
            env = situation.env
            tools: list[Any] = env.tool_schemas()
            prompt: Any = self.tokenizer.apply_chat_template(
                episode_messages(env, as_calls=self._needs_calls),
                tools=tools,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
            stream = f"chat-{self._seed}-{situation.seed}-{len(env.episode.turns)}"
            turns.append(Generation(list(prompt), stream, self._max_new_tokens))
        room = context_length(self.model) - self._max_new_tokens
        fitting = [turn for turn in turns if len(turn.prompt) <= room]
        # Texts of similar length need little padding.
        fitting.sort(key=lambda turn: len(turn.prompt))
        self._engine.generate(fitting, temperature=self._temperature)
        return [self._text(turn) for turn in turns]

    def _text(self, turn: Generation) -> str:
        """Return the text of a turn, including call markers, without the token that ended it.

        The text includes a thinking tag at the end of the prompt, so that calls inside a thought
        are not run.
        """
        if not turn.tokens:
            return ""
        is_ended = turn.tokens[-1] in self._stop
        decode: Any = partial(self.tokenizer.decode, skip_special_tokens=False)
        written = str(decode(turn.tokens[:-1] if is_ended else turn.tokens))
        return opened_thought(str(decode(turn.prompt[-16:]))) + written


def load_model(
    path_or_hub_id: str,
    *,
    for_training: bool = False,
    dtype: str = "float32",
    chat_template: str | ChatTemplate | None = None,
    device: str | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load model and tokenizer from a folder or the Hugging Face hub.

    Args:
        path_or_hub_id: A folder, a model id on the hub, or the name of a published model.
        for_training: Whether to load the weights in `dtype` instead of the data type of the file.
        dtype: Data type for training: `float32`, `bfloat16`, or `auto` for the faster one on this
            machine.
        chat_template: Chat template that replaces the tokenizer's template: `hermes`, or the path
            of a Jinja file (see `adapters.training.models.chat_templates`). None keeps the
            tokenizer's template.
        device: Device of the model. None means the GPU if there is one, otherwise the CPU.

    Raises:
        ConfigurationError: If there is no such model or template, or the model has no template.
    """
    check_model(path_or_hub_id)
    if isinstance(chat_template, str):
        chat_template = ChatTemplate.named(chat_template)  # checked before the weights are read
    path = Path(place_of(path_or_hub_id)).expanduser()
    source = str(path) if path.exists() else path_or_hub_id
    disable_progress_bar()
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(logging.ERROR)  # each retry logs a warning
    try:
        with reporting(f"loading {path.name}"):
            chosen = fast_dtype() if dtype == "auto" else dtype
            loaded_dtype = getattr(torch, chosen) if for_training else "auto"
            model, tokenizer = generation.load(source, loaded_dtype, device)
    # The type of the exception depends on the reader of the damaged file.
    except Exception as problem:
        reason = (str(problem).strip() or repr(problem)).splitlines()[0]
        raise ConfigurationError(
            f"The model {path_or_hub_id} cannot be loaded: {reason} If it is on the hub, check its"
            " name and the network; HF_HUB_OFFLINE=1 allows only downloaded models. Otherwise pass"
            " a folder."
        ) from problem
    finally:
        hub.setLevel(level)
    if chat_template is not None:
        tokenizer = with_chat_template(tokenizer, chat_template, model)
    if not tokenizer.chat_template:
        raise ConfigurationError(
            f"{path_or_hub_id} has no chat template, which is required to show tools. Add"
            ' --chat-template hermes (in Python chat_template="hermes"), which fits any model, or'
            " use a chat model (an -Instruct version)."
        )
    return model, tokenizer
