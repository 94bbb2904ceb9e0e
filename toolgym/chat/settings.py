"""Settings of a chat model: its server, deadlines, retries and prices.

One frozen object holds all of it, so that it can be printed, compared and pickled. It names the
environment variable that holds the key, and never the key.
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
        base_url: URL of the server, mostly ending in `/v1`. Empty takes the variable
            `OPENAI_BASE_URL`, and without that the cloud of OpenAI.
        api_key_env: The environment variable that holds the key; a local server needs none.
        temperature: None leaves it to the server.
        max_tokens: Largest number of tokens of one reply.
        extra: More fields of the request, such as `{"top_p": 0.9}`; a value of None takes a field
            out, as in `{"max_tokens": None, "max_completion_tokens": 2000}`.
        concurrency: Largest number of requests in flight.
        retries: Further tries of a request that failed in a way that may pass.
        timeout: Time limit of one try, in seconds.
        deadline: Time limit of a request with all its tries, in seconds from when it gets its turn.
        prices: By model, dollars per million tokens read and written.
        cache: True remembers replies in the cache folder, a path in that file; False does not. It
            is for servers that keep serving the same model under one name.

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
                f"a setting of a chat model is refused: {refused_fields(problem)} The settings are"
                f" {names}."
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
                "it is the name of an environment variable that holds the key, never the key"
                " itself; what was given is not shown here."
            )
        return name

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return (self.base_url or os.environ.get(URL_VARIABLE) or DEFAULT_URL).rstrip("/")

    @property
    def cache_file(self) -> Path | None:
        """The file of remembered replies; None if they are not remembered."""
        if isinstance(self.cache, Path):
            return self.cache.expanduser()
        return cache_folder() / "chat" / "replies.sqlite" if self.cache else None

    def key(self) -> str:
        """The key that is in the environment now; empty if there is none.

        Raises:
            ConfigurationError: A header of HTTP cannot hold it.
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


def _check_url(url: str) -> None:
    if "@" in url or "?" in url:
        raise ConfigurationError(
            "the base URL has a name, a password or a query in it, and URLs are written into logs:"
            " put the key into the environment, and name the variable with api_key_env."
        )
    found = _URL.fullmatch(url)
    if found is None or not 0 < int((found[3] or ":80")[1:]) < 1 << 16:
        raise ConfigurationError(
            f"{url!r} is no base URL; one is http://127.0.0.1:8000/v1, for example."
        )
