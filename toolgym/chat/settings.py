"""Settings of a chat model: its server, deadlines, retries and prices.

One frozen object says all of it, so that it can be printed, compared and pickled. It names the
environment variable that holds the key, and never the key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError

DEFAULT_URL: Final = "https://api.openai.com/v1"
URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
_MILLION: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ChatSettings:
    """The settings of a chat model.

    Args:
        model: The model, as the server calls it.
        base_url: Of the server, mostly ending in `/v1`; empty takes the variable `OPENAI_BASE_URL`,
            and without that the cloud of OpenAI.
        api_key_env: The environment variable that holds the key; a local server needs none.
        temperature: None leaves it to the server.
        max_tokens: Most tokens of one reply.
        extra: More fields of the request, such as `{"top_p": 0.9}`; a value of None takes a field
            out, as in `{"max_tokens": None, "max_completion_tokens": 2000}`.
        concurrency: Requests in flight, per client and event loop.
        retries: Further tries of a request that failed in a way that may pass.
        backoff: Seconds before the first of them; doubled each time, up to 20, and scattered.
        timeout: Seconds that one try may take.
        deadline: Seconds that a request may take with all its tries, from when it gets its turn.
        prices: By model, dollars per million tokens read and written.
        cache: True remembers replies in the cache folder, a path in that file; False does not. It
            is for servers whose models stay what they are called.

    Raises:
        ConfigurationError: One of them cannot be.
    """

    model: str
    base_url: str = ""
    api_key_env: str = KEY_VARIABLE
    temperature: float | None = 0.0
    max_tokens: int = 1024
    extra: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = 64
    retries: int = 5
    backoff: float = 0.5
    timeout: float = 120.0
    deadline: float = 600.0
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    cache: bool | str | Path = False

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise ConfigurationError("name the model, as in openai:gpt-4o-mini.")
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
                raise ConfigurationError(f"{name} must be at least {least}, got {value!r}.")
        if self.temperature is not None and not 0 <= self.temperature <= 10:
            raise ConfigurationError(f"temperature must be 0 to 10, got {self.temperature!r}.")
        if not self.api_key_env.replace("_", "").isalnum() or self.api_key_env[0].isdigit():
            raise ConfigurationError(
                "api_key_env is the name of an environment variable that holds the key, never the"
                " key itself; what was given is not shown here."
            )
        for model, price in self.prices.items():
            if len(price) != 2 or min(price) < 0:
                raise ConfigurationError(
                    f"the price of {model!r} is two numbers, dollars per million tokens read and"
                    f" written, not {price!r}."
                )
        _check_url(self.url)

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return (self.base_url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")

    @property
    def server(self) -> str:
        """The server as messages call it."""
        return f"the chat server {self.url}"

    @property
    def cache_file(self) -> Path | None:
        """Where replies are remembered; None if they are not."""
        if self.cache is False:
            return None
        if self.cache is True:
            return cache_folder() / "chat" / "replies.sqlite"
        return Path(self.cache).expanduser()

    def key(self) -> str:
        """The key as it stands in the environment now; empty if there is none.

        Raises:
            ConfigurationError: It cannot stand in a header of HTTP.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(
                f"the key in {self.api_key_env} holds characters that no key has, such as curly"
                " quotes or a line break; set it anew."
            )
        return key

    def dollars(self, tokens_in: int, tokens_out: int) -> float | None:
        """The cost of so many tokens; None if the price of the model is not known.

        >>> ChatSettings(model="m", prices={"m": (0.5, 2.0)}).dollars(1_000_000, 500_000)
        1.5
        """
        price = self.prices.get(self.model)
        if price is None:
            return None
        return (tokens_in * price[0] + tokens_out * price[1]) / _MILLION


_AT_LEAST: Final = {
    "max_tokens": 1,
    "concurrency": 1,
    "retries": 0,
    "backoff": 0.0,
    "timeout": 0.001,
    "deadline": 0.001,
}


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.username or parts.password or parts.query:
        raise ConfigurationError(
            "the base URL has a name, a password or a query in it, and URLs are written into logs:"
            " put the key into the environment, and name the variable with api_key_env."
        )
    spelt = parts.scheme in ("http", "https") and url.isprintable() and _is_host(parts.hostname)
    if not spelt or port == 0:
        raise ConfigurationError(
            f"{url!r} is no base URL; one is http://127.0.0.1:8000/v1, for example."
        )


def _is_host(name: str | None) -> bool:
    try:
        return bool(name) and bool(str(name).encode("idna"))
    except UnicodeError:
        return False


def settings_for(model: str, options: Mapping[str, Any], more: Sequence[str] = ()) -> ChatSettings:
    """Settings from the name of a model and options by name, as a command line gives them.

    Args:
        model: As the server calls it.
        options: By name.
        more: Options that the caller takes itself, for the message.

    Raises:
        ConfigurationError: There is no such option.
    """
    names = [each.name for each in fields(ChatSettings) if each.name != "model"] + [*more]
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}."
            raise ConfigurationError(f"a model on a server has no option {name!r}; {meant}")
    return ChatSettings(model=model, **options)
