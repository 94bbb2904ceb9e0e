"""`ChatSettings`: the server of a chat model, with its limits, retries, prices and cache.

The settings are a frozen object that can be printed, compared and pickled. The object contains the
name of the environment variable with the API key, never the key itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from toolgym.cache import cache_folder
from toolgym.errors import ConfigurationError, refused_fields

DEFAULT_URL: Final = "https://api.openai.com/v1"
URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
_MILLION: Final = 1_000_000
_LABEL: Final = r"[a-z0-9_-]{1,63}"
_URL: Final = re.compile(
    rf"https?://(\[[0-9a-f:.]+\]|{_LABEL}(\.{_LABEL})*\.?)(:\d{{1,5}})?(/[\x21-\x7e]*)?", re.I
)

Seconds = Annotated[float, Field(ge=0.001)]
Dollars = Annotated[float, Field(ge=0)]


class ChatSettings(BaseModel):
    """The settings of a chat model.

    Attributes:
        model: Name of the model on the server.
        base_url: URL of the server, which usually ends in `/v1`. None means the value of the
            environment variable `OPENAI_BASE_URL`, or OpenAI's own server if the variable is not
            set.
        api_key_env: Name of the environment variable with the API key. Local servers need no key.
        temperature: Sampling temperature; None uses the server's default.
        max_tokens: Maximum number of tokens of a reply.
        extra: Additional fields of the request, such as `{"top_p": 0.9}`. The value None removes a
            field, as in `{"max_tokens": None, "max_completion_tokens": 2000}`.
        concurrency: Maximum number of requests in flight.
        retries: Maximum number of retries after a temporary failure.
        timeout: Time limit of one attempt, in seconds.
        deadline: Time limit of a request with all its attempts, in seconds, excluding the time
            spent waiting for other requests.
        prices: Dollars per million prompt tokens and per million generated tokens, by model.
        cache: Whether replies are cached. True stores the replies in the cache folder; a path
            specifies the cache file. Enable the cache only for servers whose model names always
            refer to the same model.

    Raises:
        ConfigurationError: A setting is out of range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    base_url: str = ""
    api_key_env: str = KEY_VARIABLE
    temperature: float | None = Field(0.0, ge=0, le=10)
    max_tokens: int = Field(1024, ge=1)
    extra: Mapping[str, Any] = {}
    concurrency: int = Field(64, ge=1)
    retries: int = Field(5, ge=0)
    timeout: Seconds = 120.0
    deadline: Seconds = 600.0
    prices: Mapping[str, tuple[Dollars, Dollars]] = {}
    cache: bool | Path = False

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as problem:
            names = ", ".join(type(self).model_fields)
            raise ConfigurationError(
                f"invalid setting of a chat model: {refused_fields(problem)}. The settings"
                f" are {names}."
            ) from None
        _check_url(self.url)

    @field_validator("model")
    @classmethod
    def _has_name(cls, model: str) -> str:
        if not model.strip():
            raise ValueError("name the model, as in openai:gpt-4o-mini.")
        return model

    @field_validator("api_key_env")
    @classmethod
    def _is_variable(cls, name: str) -> str:
        if not name.isidentifier():
            raise ValueError(
                "it must be the name of the environment variable with the key, not the key itself"
                " (the value is not shown here)."
            )
        return name

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return (self.base_url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")

    @property
    def cache_file(self) -> Path | None:
        """The file of cached replies, or None if replies are not cached."""
        if isinstance(self.cache, Path):
            return self.cache.expanduser()
        return cache_folder() / "chat" / "replies.sqlite" if self.cache else None

    def key(self) -> str:
        """Read the API key from the environment variable, or return "" if there is none.

        Raises:
            ConfigurationError: The key cannot be sent in an HTTP header.
        """
        key = os.environ.get(self.api_key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError(
                f"the key in {self.api_key_env} contains invalid characters, such as curly quotes"
                " or a line break; set it again."
            )
        return key

    def dollars(self, tokens_in: int, tokens_out: int) -> float | None:
        """Return the cost of the given token counts in dollars, or None if the price is unknown.

        >>> ChatSettings(model="m", prices={"m": (0.5, 2.0)}).dollars(1_000_000, 500_000)
        1.5
        """
        price = self.prices.get(self.model)
        if price is None:
            return None
        return (tokens_in * price[0] + tokens_out * price[1]) / _MILLION


def _check_url(url: str) -> None:
    if "@" in url or "?" in url:
        raise ConfigurationError(
            "the base URL contains a name, a password or a query, but URLs are written into logs:"
            " put the key into the environment, and name the variable with api_key_env."
        )
    found = _URL.fullmatch(url)
    if found is None or not 0 < int((found[3] or ":80")[1:]) < 1 << 16:
        raise ConfigurationError(f"{url!r} is not a base URL, such as http://127.0.0.1:8000/v1.")
