"""Chat models behind an OpenAI-compatible server: one client for policies and operators.

`ChatClient.complete` and `complete_all` ask and wait for replies. The client retries what may pass,
keeps to a concurrency and a deadline, counts tokens and dollars, and remembers replies on disk if
it is told to. What cannot be had is a `ChatFault`, an `EnvironmentFault` with a code of its own,
and never a text. `toolgym.policies.chat.ChatPolicy` plays environments by it: `--policy
openai:MODEL`.

The library `openai` (the extra of that name) is imported when the first request is sent. A key is
read from the environment there and then, and held by nothing that is printed, pickled or stored.
"""

from toolgym.chat.client import ChatClient, Totals
from toolgym.chat.faults import CHAT_FAULTS, ChatFault
from toolgym.chat.reply import Chat, Reply
from toolgym.chat.settings import ChatSettings
from toolgym.lazy import lazy_names

__all__ = [
    "CHAT_FAULTS",
    "Chat",
    "ChatClient",
    "ChatFault",
    "ChatSettings",
    "Reply",
    "Totals",
]

__getattr__ = lazy_names(__name__, {"toolgym.policies.chat": "ChatPolicy"})[0]
