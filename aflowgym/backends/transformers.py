"""A backend that generates replies with a language model in this process.

Requests from several threads are generated together, in batches. Each request has its own random
number generator, so a reply does not depend on the other requests in the batch, except for rounding
(see `toolgym.generation.sampling`).

torch and transformers (the extra `train`) are imported when a model is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aflowgym.backends.sharing import shared
from aflowgym.operators.context import Completion, Request, Sandbox
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.forks import renew_in_child

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_OPTIONS: Final = ("batch", "max_new_tokens", "sandbox", "temperature")
#: Seconds without a new request after which a batch starts. A reply takes many times as long.
_PAUSE: Final = 0.002


class _Ticket:
    """A request of a waiting thread, and its result."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.outcome: Completion | EnvironmentFault | None = None


class TransformersBackend:
    """A backend that generates replies with a model in this process. The class is thread-safe.

    Args:
        model: A causal language model.
        tokenizer: Tokenizer of the model, with a chat template.
        temperature: Sampling temperature; 0 means greedy decoding.
        max_new_tokens: Maximum number of tokens in a reply.
        batch: Maximum number of requests in one batch. A batch that does not fit into memory is
            split into smaller ones.

    Raises:
        ConfigurationError: If an argument is out of range, or there is no chat template.
    """

    sandbox: Sandbox | None
    waits: Final = True
    """Whether requests are sent in parallel, so that they can share batches."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        temperature: float = 0.7,
        max_new_tokens: int = 512,
        batch: int = 16,
        sandbox: Sandbox | None = None,
    ) -> None:
        if temperature < 0 or max_new_tokens < 1 or batch < 1:
            raise ConfigurationError(
                "temperature must be at least 0, and max_new_tokens and batch at least 1,"
                f" got {temperature=}, {max_new_tokens=}, {batch=}."
            )
        if not tokenizer.chat_template:
            raise ConfigurationError(
                "the tokenizer has no chat template. Use a chat model (an -Instruct version), or"
                " set tokenizer.chat_template."
            )
        from toolgym.generation import Engine, stop_ids

        self.model, self.tokenizer, self.sandbox = model, tokenizer, sandbox
        self.temperature, self.max_new_tokens, self.batch = temperature, max_new_tokens, batch
        self._stops = stop_ids(model, tokenizer)
        self._engine = Engine(model, stop=self._stops, slots=batch)
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Create an empty queue of requests; this method is also called in a forked child."""
        self._change = threading.Condition()
        self._waiting: list[_Ticket] = []
        self._busy = False

    def generate(self, request: Request) -> Completion:
        """Complete one request, in a batch with requests of other threads.

        One of the waiting threads generates a batch, starting with the oldest requests.

        Raises:
            EnvironmentFault: If the model failed, or the request does not fit into memory.
        """
        ticket = _Ticket(request)
        with self._change:
            self._waiting.append(ticket)
            while ticket.outcome is None:
                if self._busy:
                    self._change.wait()
                    continue
                self._busy = True
                batch: list[_Ticket] = []
                try:
                    arrived = 0
                    while arrived < len(self._waiting) < self.batch:
                        arrived = len(self._waiting)
                        self._change.wait(_PAUSE)
                    batch = self._waiting[: self.batch]
                    self._change.release()
                    try:
                        self._complete(batch)
                    finally:
                        self._change.acquire()
                finally:  # after an interrupt another thread takes the requests without an outcome
                    self._waiting = [each for each in self._waiting if each.outcome is None]
                    self._busy = False
                    self._change.notify_all()
        if isinstance(ticket.outcome, EnvironmentFault):
            raise ticket.outcome
        return ticket.outcome

    def _complete(self, batch: Sequence[_Ticket]) -> None:
        """Generate the replies to a batch. If this fails, split the batch in half."""
        from toolgym.generation import Generation

        try:
            made = []
            for ticket in batch:
                prompt: Any = self.tokenizer.apply_chat_template(
                    ticket.request.messages,
                    add_generation_prompt=True,
                    tokenize=True,
                    return_dict=False,
                )
                most = min(self.max_new_tokens, max(1, ticket.request.max_tokens))
                made.append(Generation(list(prompt), f"operator-{ticket.request.draw}", most))
            self._engine.generate(made, temperature=self.temperature)
            for ticket, reply in zip(batch, made, strict=True):
                ended = bool(reply.tokens) and reply.tokens[-1] in self._stops
                written = reply.tokens[:-1] if ended else reply.tokens
                text = str(self.tokenizer.decode(written, skip_special_tokens=True))
                counts = len(reply.prompt), len(reply.tokens)
                ticket.outcome = Completion(text, *counts, not ended)
        except Exception as problem:  # noqa: BLE001 - templates and drivers raise many types
            first = str(problem).strip().split("\n")[0]
        else:
            return
        if len(batch) > 1:  # done here, where no traceback keeps the memory of the failed batch
            half = len(batch) // 2
            self._complete(batch[:half])
            self._complete(batch[half:])
        else:
            batch[0].outcome = EnvironmentFault(
                f"the model failed on a request: {first}.",
                "If memory is too small, lower max_new_tokens or batch.",
            )


def shared_model(folder: str, options: Mapping[str, Any]) -> TransformersBackend:
    """Return the backend for a model folder; callers with equal options share one backend.

    Args:
        folder: A folder with config.json, weights and a tokenizer.
        options: Options of `TransformersBackend`.

    Raises:
        ConfigurationError: If there is no such option or model, or the `transformers` library is
            not installed.
    """
    for name in options:
        if name not in _OPTIONS:
            raise ConfigurationError(
                f"a model in this process has no option {name!r}; there are {', '.join(_OPTIONS)}."
            )

    return shared(
        f"transformers:{folder}", options, lambda: TransformersBackend(*_load(folder), **options)
    )


def _load(folder: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    place = Path(folder).expanduser()
    if not folder or not (place / "config.json").is_file():
        raise ConfigurationError(
            f"{folder!r} is not a model folder. Pass a folder with config.json, as in"
            " transformers:models/mine."
        )
    try:
        from toolgym.generation import load
    except ImportError as problem:
        raise ConfigurationError(
            f"a model in this process needs packages that are not installed ({problem})."
            " Run: pip install 'toolgym[train]'."
        ) from problem
    try:
        return load(place)
    except (OSError, ValueError) as problem:
        first = str(problem).strip().split("\n")[0]
        raise ConfigurationError(f"the model in {place} cannot be loaded: {first}") from problem
