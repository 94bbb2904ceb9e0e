"""Chat models behind an OpenAI-compatible server: one client for policies and operators.

`ChatClient.complete` and `complete_all` ask and wait for replies, over the library `openai` (the
extra of that name), which is imported when the first request is sent. A request that gets no reply
is a `ChatFault`, an `EnvironmentFault` with a code of its own. `toolgym.policies.chat.ChatPolicy`
plays environments with the client: `--policy openai:MODEL`.

The key is read from the environment with the first request; nothing that is printed, pickled or
stored holds it.
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
