"""Operators that ask a language model in this process: a folder that `transformers` can load.

Requests are answered one at a time. Each draws from a random stream of its own, named after all
that its draw may depend on.

Torch and transformers (the extra `train`) are imported when a model is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aflowgym.backends.sharing import Shared
from aflowgym.operators.context import Completion, Request, Sandbox
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.forks import renew_in_child

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from toolgym.generation import Generation

_OPTIONS: Final = ("max_new_tokens", "sandbox", "temperature")


class TransformersBackend:
    """Replies of a model in this process.

    Args:
        model: A causal language model.
        tokenizer: Its tokenizer, with a chat template.
        temperature: 0 takes the likeliest token.
        max_new_tokens: Most tokens of one reply.

    Raises:
        ConfigurationError: An argument is out of range, or there is no chat template.
    """

    sandbox: Sandbox | None

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        temperature: float = 0.7,
        max_new_tokens: int = 512,
        sandbox: Sandbox | None = None,
    ) -> None:
        if temperature < 0 or max_new_tokens < 1:
            raise ConfigurationError(
                "temperature must not be negative, and max_new_tokens at least 1,"
                f" got {temperature=}, {max_new_tokens=}."
            )
        if not tokenizer.chat_template:
            raise ConfigurationError(
                "the tokenizer has no chat template; take a chat model (an -Instruct version), or"
                " set tokenizer.chat_template."
            )
        from toolgym.generation import Engine, stop_ids

        self.model, self.tokenizer, self.sandbox = model, tokenizer, sandbox
        self.temperature, self.max_new_tokens = temperature, max_new_tokens
        self._stops = stop_ids(model, tokenizer)
        self._engine = Engine(model, stop=self._stops)
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin without a request under way, also in a process that was forked off."""
        self._lock = threading.Lock()  # one request at a time: the model has the machine to itself

    def generate(self, request: Request) -> Completion:
        """One completion.

        Raises:
            EnvironmentFault: The model failed, or memory is too small for it.
        """
        try:
            reply = self._begin(request)
            with self._lock:
                self._engine.generate([reply], temperature=self.temperature)
        except (RuntimeError, MemoryError) as problem:  # torch's own errors are RuntimeErrors
            first = str(problem).strip().split("\n")[0]
            raise EnvironmentFault(
                f"the model failed on a request: {first}.",
                "If memory is short, lower max_new_tokens.",
            ) from problem
        ended = bool(reply.tokens) and reply.tokens[-1] in self._stops
        written = reply.tokens[:-1] if ended else reply.tokens
        text = str(self.tokenizer.decode(written, skip_special_tokens=True))
        return Completion(text, len(reply.prompt), len(reply.tokens), not ended)

    def _begin(self, request: Request) -> Generation:
        from toolgym.generation import Generation

        prompt: Any = self.tokenizer.apply_chat_template(
            request.messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        most = min(self.max_new_tokens, max(1, request.max_tokens))
        return Generation(list(prompt), f"operator-{request.draw}", most)


_shared: Final = Shared["TransformersBackend"]()


def shared_model(folder: str, options: Mapping[str, Any]) -> TransformersBackend:
    """The backend of a model's folder and its options: one for all environments of this process.

    Args:
        folder: With config.json, weights and a tokenizer.
        options: Those of `TransformersBackend`.

    Raises:
        ConfigurationError: There is no such option or no such model, or transformers is missing.
    """
    for name in options:
        if name not in _OPTIONS:
            raise ConfigurationError(
                f"a model in this process has no option {name!r}; there are {', '.join(_OPTIONS)}."
            )

    def make() -> TransformersBackend:
        return TransformersBackend(*_load(folder), **options)

    return _shared.get(f"transformers:{folder}", options, make)


def _load(folder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    place = Path(folder).expanduser()
    if not folder or not (place / "config.json").is_file():
        raise ConfigurationError(
            f"name the model's folder, one with config.json in it, as in transformers:models/mine;"
            f" {folder!r} is none."
        )
    try:
        from toolgym.generation import load
    except ImportError as problem:
        raise ConfigurationError(
            f"a model in this process needs more than is installed ({problem});"
            " run: pip install 'toolgym[train]'."
        ) from problem
    try:
        return load(place)
    except (OSError, ValueError) as problem:
        first = str(problem).strip().split("\n")[0]
        raise ConfigurationError(f"the model in {place} cannot be loaded: {first}") from problem
