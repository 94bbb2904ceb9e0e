"""Client for chat models on an OpenAI-compatible server, used by policies and operators.

`ChatClient.complete` and `complete_all` send requests and wait for the replies. These methods use
the library `openai` (the extra `openai`), which is imported at the first request. A request without
a reply results in a `ChatFault`, which is an `EnvironmentFault` with a code.
`toolgym.policies.chat.ChatPolicy` uses the client for `--policy openai:MODEL`.

The API key is read from an environment variable at the first request. The key is never printed,
pickled or stored.
"""

from toolgym.chat.client import ChatClient, Totals
from toolgym.chat.faults import CHAT_FAULTS, ChatFault
from toolgym.chat.reply import Chat, Reply
from toolgym.chat.settings import ChatSettings

__all__ = [
    "CHAT_FAULTS",
    "Chat",
    "ChatClient",
    "ChatFault",
    "ChatSettings",
    "Reply",
    "Totals",
]
