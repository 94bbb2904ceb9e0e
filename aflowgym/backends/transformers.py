"""Operators that ask a language model in this process: a folder that `transformers` can load.

A model is fast when it continues many prompts at once. On the waiting face requests come one at a
time; on the other face those that come within a short window, from branches of a workflow and from
workflows beside it, are continued as one batch, in a thread, so that the event loop goes on.

Each request draws from a random stream of its own, seeded by all that its draw may depend on. So a
reply does not depend on who shares its batch, up to rounding: a batch of another width adds in
another order, which can turn a near tie. In float32 on a CPU that is rare, in half precision it is
not; with `batch=1` it cannot happen.

Torch and transformers (the extra `train`) are imported when a model is loaded or asked.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aflowgym.backends.sharing import Shared
from aflowgym.execution.protocols import Completion, Request, Sandbox
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.forks import renew_in_child

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_OPTIONS: Final = ("batch", "max_new_tokens", "sandbox", "temperature", "window")
_Waiting = tuple[Request, "asyncio.Future[Completion]"]


class _Row(NamedTuple):
    """One prompt of a batch, how many tokens it may be continued by, and its random stream."""

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
        batch: Most requests in one forward pass.
        window: Seconds that a request waits for others, on the face that does not wait.

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
        batch: int = 16,
        window: float = 0.005,
        sandbox: Sandbox | None = None,
    ) -> None:
        if temperature < 0 or max_new_tokens < 1 or batch < 1 or window < 0:
            raise ConfigurationError(
                "temperature and window must not be negative, max_new_tokens and batch at least 1,"
                f" got {temperature=}, {window=}, {max_new_tokens=}, {batch=}."
            )
        if not tokenizer.chat_template:
            raise ConfigurationError(
                "the tokenizer has no chat template; take a chat model (an -Instruct version), or"
                " set tokenizer.chat_template."
            )
        self.model, self.tokenizer, self.sandbox = model.train(False), tokenizer, sandbox
        self.temperature, self.max_new_tokens = temperature, max_new_tokens
        self.batch, self.window = batch, window
        self._stops = _stops(model, tokenizer)
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin without a batch under way, also in a process that was forked off."""
        self._lock = threading.Lock()  # one batch at a time: the model has the machine to itself
        self._thread = ThreadPoolExecutor(1, "toolgym-model")
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}

    def generate(self, request: Request) -> Completion:
        """One completion.

        Raises:
            EnvironmentFault: The model failed, or memory is too small for it.
        """
        return self._complete([request])[0]

    async def agenerate(self, request: Request) -> Completion:
        """One completion, in a batch with those that are asked for at the same time."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        reply: asyncio.Future[Completion] = loop.create_future()
        waiting.append((request, reply))
        if len(waiting) >= self.batch:
            self._leave(loop)
        elif len(waiting) == 1:
            loop.call_later(self.window, self._leave, loop, reply)
        return await reply

    def _leave(
        self, loop: asyncio.AbstractEventLoop, first: asyncio.Future[Completion] | None = None
    ) -> None:
        """Send those that wait to the model; a timer whose batch has left already does nothing."""
        waiting = self._waiting.get(loop, [])
        if not waiting or (first is not None and waiting[0][1] is not first):
            return
        del self._waiting[loop]
        pending = [each for each in waiting if not each[1].done()]
        work = loop.run_in_executor(self._thread, self._complete, [each for each, _ in pending])
        work.add_done_callback(lambda done: _hand_out(done, [reply for _, reply in pending]))

    def _complete(self, requests: Sequence[Request]) -> list[Completion]:
        """A completion for each, `batch` at a time."""
        try:
            rows = [self._row(request) for request in requests]
            with self._lock:
                written = [
                    tokens
                    for start in range(0, len(rows), self.batch)
                    for tokens in self._continue_rows(rows[start : start + self.batch])
                ]
        except (RuntimeError, MemoryError) as problem:  # torch's own errors are RuntimeErrors
            first = str(problem).strip().split("\n")[0]
            raise EnvironmentFault(
                f"the model failed on {len(requests)} requests: {first}.",
                "If memory is short, lower batch or max_new_tokens.",
            ) from problem
        return [self._completion(row, new) for row, new in zip(rows, written, strict=True)]

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

    def _continue_rows(self, rows: Sequence[_Row]) -> list[list[int]]:
        """The new tokens of each row, the one that ends it included."""
        import torch

        written: list[list[int]] = [[] for _ in rows]
        running = [place for place, row in enumerate(rows) if row.most > 0]
        if not running:
            return written
        device = self.model.device
        padded, present = _pad([rows[place].prompt for place in running])
        tokens, mask = torch.tensor(padded, device=device), torch.tensor(present, device=device)
        positions, cache = (mask.cumsum(dim=1) - 1).clamp(min=0), None
        batch, open_ = list(running), set(running)
        with torch.inference_mode():
            while open_:
                out = self.model(
                    input_ids=tokens, attention_mask=mask, position_ids=positions,
                    past_key_values=cache, logits_to_keep=1, use_cache=True,
                )  # fmt: skip
                cache = out.past_key_values
                chosen = self._chosen(out.logits[:, -1], [rows[place].stream for place in batch])
                for place, token in zip(batch, chosen, strict=True):
                    if place in open_:
                        written[place].append(token)
                        if token in self._stops or len(written[place]) >= rows[place].most:
                            open_.discard(place)
                tokens = torch.tensor(chosen, device=device)[:, None]
                mask = torch.cat([mask, mask.new_ones(len(batch), 1)], dim=1)
                positions = positions[:, -1:] + 1
        return written

    def _chosen(self, logits: Tensor, streams: Sequence[random.Random]) -> list[int]:
        """One token per row of `logits` (B, V): where its number falls in the distribution."""
        import torch

        if self.temperature == 0:
            likeliest: list[int] = logits.argmax(dim=1).tolist()
            return likeliest
        cumulative = torch.softmax(logits.double() / self.temperature, dim=1).cumsum(dim=1)
        numbers = torch.tensor([[stream.random()] for stream in streams], dtype=torch.float64)
        points = numbers.to(logits.device) * cumulative[:, -1:]
        tokens: list[int] = torch.searchsorted(cumulative, points, right=True).squeeze(1).tolist()
        return [min(token, logits.shape[1] - 1) for token in tokens]


def _pad(prompts: Sequence[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    """Prompts of one width, filled up on the left, and 1 where there is a token, 0 where none."""
    width = max(map(len, prompts))
    pads = [width - len(prompt) for prompt in prompts]
    padded = [[0] * pad + prompt for pad, prompt in zip(pads, prompts, strict=True)]
    return padded, [[0] * pad + [1] * (width - pad) for pad in pads]


def _hand_out(
    done: asyncio.Future[list[Completion]], replies: Sequence[asyncio.Future[Completion]]
) -> None:
    """Give each who waits its own completion, or all of them the fault."""
    problem = None if done.cancelled() else done.exception()
    for place, reply in enumerate(replies):
        if reply.done():
            continue
        if done.cancelled():
            reply.cancel()
        elif problem is not None:
            reply.set_exception(problem)
        else:
            reply.set_result(done.result()[place])


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
