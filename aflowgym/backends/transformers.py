"""Operators that ask a language model in this process: a folder that `transformers` can load.

Requests are answered one at a time. Each draws from a random stream of its own, seeded by all that
its draw may depend on.

Torch and transformers (the extra `train`) are imported when a model is loaded or asked.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aflowgym.backends.sharing import Shared
from aflowgym.execution.protocols import Completion, Request, Sandbox
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.forks import renew_in_child

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_OPTIONS: Final = ("max_new_tokens", "sandbox", "temperature")


class _Row(NamedTuple):
    """One prompt, how many tokens it may be continued by, and its random stream."""

    prompt: list[int]
    most: int
    stream: random.Random


class TransformersBackend:
    """Replies of a model in this process.

    Args:
        model: A causal language model; it is put into evaluation mode.
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
        self.model, self.tokenizer, self.sandbox = model.train(False), tokenizer, sandbox
        self.temperature, self.max_new_tokens = temperature, max_new_tokens
        self._stops = _stops(model, tokenizer)
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
            row = self._row(request)
            with self._lock:
                written = self._continue_row(row)
        except (RuntimeError, MemoryError) as problem:  # torch's own errors are RuntimeErrors
            first = str(problem).strip().split("\n")[0]
            raise EnvironmentFault(
                f"the model failed on a request: {first}.",
                "If memory is short, lower max_new_tokens.",
            ) from problem
        return self._completion(row, written)

    def _row(self, request: Request) -> _Row:
        prompt: Any = self.tokenizer.apply_chat_template(
            request.messages, add_generation_prompt=True, tokenize=True, return_dict=False
        )
        config = self.model.config.get_text_config()
        room = int(getattr(config, "max_position_embeddings", None) or 2**31) - len(prompt)
        most = max(0, min(self.max_new_tokens, max(1, request.max_tokens), room))
        return _Row(list(prompt), most, random.Random(f"toolgym-operator-{request.draw}"))

    def _completion(self, row: _Row, new: list[int]) -> Completion:
        ended = bool(new) and new[-1] in self._stops
        text = self.tokenizer.decode(new[:-1] if ended else new, skip_special_tokens=True)
        return Completion(str(text), len(row.prompt), len(new), not ended)

    def _continue_row(self, row: _Row) -> list[int]:
        """The new tokens of a row, the one that ends it included."""
        import torch

        written: list[int] = []
        if row.most <= 0:
            return written
        device = self.model.device
        tokens = torch.tensor([row.prompt], device=device)
        mask = torch.ones_like(tokens)
        positions, cache = mask.cumsum(dim=1) - 1, None
        with torch.inference_mode():
            while True:
                out = self.model(
                    input_ids=tokens, attention_mask=mask, position_ids=positions,
                    past_key_values=cache, logits_to_keep=1, use_cache=True,
                )  # fmt: skip
                cache = out.past_key_values
                token = self._chosen(out.logits[:, -1], row.stream)
                written.append(token)
                if token in self._stops or len(written) >= row.most:
                    return written
                tokens = torch.tensor([[token]], device=device)
                mask = torch.cat([mask, mask.new_ones(1, 1)], dim=1)
                positions = positions[:, -1:] + 1

    def _chosen(self, logits: Tensor, stream: random.Random) -> int:
        """The token of `logits` (1, V) on which the stream's next number falls."""
        import torch

        if self.temperature == 0:
            return int(logits.argmax(dim=1).item())
        cumulative = torch.softmax(logits.double() / self.temperature, dim=1).cumsum(dim=1)
        numbers = torch.tensor([[stream.random()]], dtype=torch.float64)
        points = numbers.to(logits.device) * cumulative[:, -1:]
        token = int(torch.searchsorted(cumulative, points, right=True).item())
        return min(token, logits.shape[1] - 1)


def _stops(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """The tokens that end a reply: the tokenizer's and those of the generation config."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    token_ids = declared if isinstance(declared, list) else [declared]
    return frozenset(int(each) for each in [*token_ids, tokenizer.eos_token_id] if each is not None)


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
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as problem:
        raise ConfigurationError(
            f"a model in this process needs more than is installed ({problem});"
            " run: pip install 'toolgym[train]'."
        ) from problem
    try:
        tokenizer = AutoTokenizer.from_pretrained(place)
        model = AutoModelForCausalLM.from_pretrained(place, dtype="auto")
    except (OSError, ValueError) as problem:
        first = str(problem).strip().split("\n")[0]
        raise ConfigurationError(f"the model in {place} cannot be loaded: {first}") from problem
    device: Any = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device), tokenizer
