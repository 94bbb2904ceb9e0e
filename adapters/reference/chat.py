"""The chat format: prompts and tool results as tokens, appended and never rendered again.

A rollout is a growing list of tokens. The prompt is rendered once; a turn is the tokens that were
sampled; and what comes between a turn and the next (the end of one message, the results, the
opening of the next) is rendered on its own, as the tail of a short invented chat. Earlier turns are
never rendered again: a model that is trained on other tokens than it sampled learns from somebody
else's words, and a text that is decoded and encoded again often gives other tokens.

A turn ends in one of three ways: its message has an end, at which generation stops (most families);
the model stops with the opening of the next message, since messages have no end (GLM); or the
template writes another end in the midst of a chat than at its close (gpt-oss). Where a template
shows results behind calls alone, the invented turn makes a call.

That is right for templates whose tail does not depend on what stands before it, and that leave
alone what they rendered earlier. `check_template` holds a longer chat with tools against it, and
refuses the others. Thoughts are outside that bargain: some templates drop those of earlier turns
when they render a chat anew; here the model keeps them, since it did think them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.tokenized_examples import (
    SANITIZED,
    can_sanitize,
    needs_calls,
)
from toolgym.calls import opened_thought
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.generation import stop_ids
from toolgym.messages import Message, prompt_messages

_WORD: Final = "toolgym"
_USER: Final[Message] = {"role": "user", "content": _WORD}
_SAID: Final[Message] = {"role": "assistant", "content": _WORD}
_CURE = (
    "take --chat-template hermes, or a tokenizer with another chat template (that of a tool-calling"
    " model, or one made for training), or use --trainer trl"
)


@dataclass(frozen=True)
class _InventedTurn:
    """The turn of a short chat, behind which replies are rendered.

    Attributes:
        message: The turn.
        ids: The chat up to it.
        stops: The number of stop tokens up to its end; 0 where its message has no end of its own.
    """

    message: Message
    ids: list[int]
    stops: int

    @property
    def has_end(self) -> bool:
        """Whether its message ends with a token at which generation stops."""
        return self.stops > 0

    def tail(self, chat: list[int], stop: frozenset[int]) -> list[int]:
        """What follows its end in a chat that goes on."""
        places = [place for place, token in enumerate(chat) if token in stop]
        if 0 < self.stops <= len(places):
            return chat[places[self.stops - 1] + 1 :]
        # What is rendered alike is the turn; another end in place of the stop token belongs to it.
        return chat[_common(self.ids, chat) + self.has_end :]


class ChatFormat:
    """The chat template of one tokenizer, for the chats of one environment.

    Args:
        model: Declares, with the tokenizer, which tokens end a turn.
        tokenizer: With a chat template.
        env: Any instance of the environment; its tools are shown in prompts.

    Attributes:
        stop: The tokens that end a turn.

    Raises:
        ConfigurationError: The template cannot be used; the message says why and what to do.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any]
    ) -> None:
        self.stop = stop_ids(model, tokenizer)
        self._tokenizer = tokenizer
        self._tools: list[Any] = env.tool_schemas()
        self._options: dict[str, Any] = SANITIZED if can_sanitize(tokenizer, env) else {}
        self._calling: dict[str, _InventedTurn] = {}
        self._needs_calls = needs_calls(tokenizer)
        (self._user,) = self._encoded([[_USER]], prompted=False)
        self._said = self._invented(_SAID)
        tool: Message = {"role": "tool", "name": next(iter(env.tools)), "content": _WORD}
        if not self._said.has_end and not all(
            tail and tail[0] in self.stop for tail in self.following([[tool], [_USER]])
        ):
            names = ", ".join(repr(tokenizer.decode([token])) for token in sorted(self.stop))
            raise ConfigurationError(
                "the chat template ends the assistant's turn with none of the tokens at which"
                f" generation stops ({names or 'there are none'}): set the tokenizer's eos_token,"
                " or generation_config.eos_token_id, to the token that ends a turn."
            )

    @property
    def end_of_turn(self) -> list[int]:
        """The token that ends a turn, if its message has an end."""
        stops = [token for token in self._said.ids if token in self.stop]
        return stops[-1:] if self._said.has_end else []

    def prompts(self, envs: Sequence[ToolEnv[Any]]) -> list[list[int]]:
        """The tokens before the first turn of each environment's current episode."""
        return self._encoded([prompt_messages(env) for env in envs], tools=self._tools)

    def following(self, replies: Sequence[Sequence[Message]]) -> list[list[int]]:
        """The tokens between a turn and the next.

        Args:
            replies: For each rollout, the messages that answer its turn: results, or a remark.

        Returns:
            What follows the token that ended the turn, up to where the next turn begins. Where that
            token is the opening of the next message, it is the first of these.
        """
        turns = [self._turn_before(reply) for reply in replies]
        chats = self._encoded(
            [[_USER, turn.message, *reply] for turn, reply in zip(turns, replies, strict=True)]
        )
        return [turn.tail(chat, self.stop) for turn, chat in zip(turns, chats, strict=True)]

    def response(self, turn: Sequence[int], before: Sequence[int]) -> str:
        """The text of a turn as the environment reads it.

        Args:
            turn: Its tokens; the one that ended it is left out.
            before: The tokens before it; a tag of thinking at their end belongs to the turn.
        """
        without_stop = turn[:-1] if turn and turn[-1] in self.stop else turn
        return opened_thought(self._text(before[-16:])) + self._text(without_stop)

    def message_before(self, reply: Sequence[Message]) -> Message:
        """An invented turn of the assistant that the template lets be answered so."""
        return self._turn_before(reply).message

    def _turn_before(self, reply: Sequence[Message]) -> _InventedTurn:
        if reply[0]["role"] != "tool" or not self._needs_calls:
            return self._said
        name = str(reply[0]["name"])
        if name not in self._calling:
            function = {"name": name, "arguments": {}}
            calls = [{"type": "function", "function": function}]
            message = {"role": "assistant", "content": "", "tool_calls": calls}
            self._calling[name] = self._invented(message)
        return self._calling[name]

    def _invented(self, message: Message) -> _InventedTurn:
        (ids,) = self._encoded([[_USER, message]], prompted=False)
        begin = _common(self._user, ids)
        ends = [place for place in range(begin, len(ids)) if ids[place] in self.stop]
        stops = sum(token in self.stop for token in ids[: ends[-1] + 1]) if ends else 0
        return _InventedTurn(message, ids, stops)

    def _text(self, tokens: Sequence[int]) -> str:
        return str(
            self._tokenizer.decode(
                list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    def _encoded(
        self, chats: Sequence[list[Message]], tools: list[Any] | None = None, prompted: bool = True
    ) -> list[list[int]]:
        if not chats:
            return []
        try:
            ids: Any = self._tokenizer.apply_chat_template(
                list(chats),
                tools=tools,
                add_generation_prompt=prompted,
                tokenize=True,
                return_dict=False,
                **self._options,
            )
        except (TemplateError, TypeError, ValueError) as problem:
            raise ConfigurationError(
                f"the chat template refuses a chat with tool results ({problem}): {_CURE}."
            ) from problem
        return [list(each) for each in ids]


def check_template(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, env: ToolEnv[Any]
) -> None:
    """Check that a chat can be assembled from the prompt, the turns, and the results after each.

    Args:
        env: The environment, after `reset`.

    Raises:
        ConfigurationError: The template drops a result, rewrites what it rendered before, or ends a
            chat differently after a longer one.
    """
    chat = ChatFormat(model, tokenizer, env)
    for before, reply in _growing_chat(env, chat):
        words = [message["content"] for message in reply]
        (tail,) = chat.following([reply])
        (earlier,) = chat._encoded([before[:-1]], tools=chat._tools, prompted=False)
        (whole,) = chat._encoded([[*before, *reply]], tools=chat._tools)
        lost = [word for word in words if word not in chat._text(tail)]
        if lost:
            raise _refusal(f"drops {lost[0]!r}, which answered a turn", chat._text(whole))
        if whole[: len(earlier)] != earlier:
            raise _refusal("rewrites earlier messages when a chat goes on", chat._text(whole))
        if whole[len(whole) - len(tail) :] != tail:
            raise _refusal("lets the end of a chat depend on its beginning", chat._text(whole))


def _growing_chat(
    env: ToolEnv[Any], chat: ChatFormat
) -> Iterator[tuple[list[Message], list[Message]]]:
    """A chat up to each of its turns, and the reply to that turn."""
    name = next(iter(env.tools))
    call = f'<tool_call>\n{{"name": "{name}", "arguments": {{}}}}\n</tool_call>'
    result = {"role": "tool", "name": name}
    replies: list[list[Message]] = [
        [{**result, "content": "toolgym_one"}],
        [{"role": "user", "content": "toolgym_two"}],
        [{**result, "content": "toolgym_three"}, {**result, "content": "toolgym_four"}],
    ]
    so_far = prompt_messages(env)
    for reply in replies:
        response = call if reply[0]["role"] == "tool" else "toolgym_remark"
        turn: Message = {"role": "assistant", "content": response}
        if reply[0]["role"] == "tool":
            invented = chat.message_before(reply)
            turn = invented if invented.get("tool_calls") else turn
        so_far = [*so_far, turn]
        yield so_far, reply
        so_far = [*so_far, *reply]


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _refusal(what: str, text: str) -> ConfigurationError:
    return ConfigurationError(
        f"the chat template {what}, so a rollout cannot be kept as the tokens that were sampled:"
        f" {_CURE}. It renders:\n{text[-1500:]}"
    )
