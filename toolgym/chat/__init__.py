"""Client for chat models on an OpenAI-compatible server, used by policies and operators.

`ChatClient.complete` and `complete_all` send requests and wait for the replies. They use the
library `openai` (the extra `openai`), which is imported with the first request. A request without a
reply is a `ChatFault`, an `EnvironmentFault` with a code. `toolgym.policies.chat.ChatPolicy` uses
the client for `--policy openai:MODEL`.

The key is read from the environment with the first request. It is never printed, pickled or stored.
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
