"""A backend for a language model on a server with an OpenAI-compatible API.

Requests go through `toolgym.chat`, which retries, caches and counts them. The seed of each request
is derived from the request's key, so the branches of `[Custom * 3]` have different seeds, and
repeated runs send the same requests. The default temperature is above 0, because with greedy
decoding all branches would get the same reply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aflowgym.backends.sharing import shared
from aflowgym.operators.context import Completion, Request, Sandbox
from aflowgym.operators.trace import Usage
from toolgym.chat import Chat, ChatClient, ChatSettings

TEMPERATURE: Final = 0.7


class OpenAIBackend:
    """A backend that requests completions from a model on a server. The class is thread-safe.

    Raises:
        ConfigurationError: If the `openai` library is not installed.
    """

    sandbox: Sandbox | None
    waits: Final = True
    """Whether requests from environments and branches are sent in parallel."""

    def __init__(self, client: ChatClient | ChatSettings, sandbox: Sandbox | None = None) -> None:
        self.client = ChatClient(client) if isinstance(client, ChatSettings) else client
        self.sandbox = sandbox

    def generate(self, request: Request) -> Completion:
        """Complete one request.

        Raises:
            ChatFault: If the server returned no completion. This is an `EnvironmentFault`.
        """
        chat = Chat(request.messages, (), request.draw, max(1, request.max_tokens))
        reply = self.client.complete(chat)
        return Completion(reply.text, reply.tokens_in, reply.tokens_out, reply.cut)

    def dollars(self, usage: Usage) -> float | None:
        """Return the cost of a run or a step in dollars, counting cached replies at full price.

        The result is None if no price is known.
        """
        return self.client.settings.dollars(usage.tokens_in, usage.tokens_out)


def shared_server(model: str, options: Mapping[str, Any]) -> OpenAIBackend:
    """Return the backend for a model; all callers with equal options share one backend.

    Args:
        model: Name of the model on the server.
        options: Options of `toolgym.chat.ChatSettings`, and `sandbox`.

    Raises:
        ConfigurationError: If there is no such option, or the `openai` library is not installed.
    """
    chosen = {"temperature": TEMPERATURE, **options}
    chat_options = {option: value for option, value in chosen.items() if option != "sandbox"}

    def make() -> OpenAIBackend:
        return OpenAIBackend(ChatSettings(model=model, **chat_options), chosen.get("sandbox"))

    return shared(f"openai:{model}", chosen, make)
