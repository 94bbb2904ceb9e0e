"""The chat format: prompts and tool results as tokens that are appended and never rendered again.

A rollout is a growing list of tokens. The prompt is rendered once, and the turns of the model
consist of the sampled tokens. The tokens between two turns are the end of a message, the tool
results, and the opening of the next message. These tokens are rendered separately, at the end of a
short placeholder chat. Earlier turns are never rendered again, because decoding and re-encoding
text often yields different tokens, and the model has to be trained on exactly the tokens that it
sampled.

There are three kinds of turn endings:

- The message has an end token at which generation stops (most families).
- Messages have no end token, and generation stops at the opening of the next message (GLM).
- The template uses a different end token inside a chat than at its end (gpt-oss).

If a template shows tool results only after a message with `tool_calls`, the placeholder turn
contains a call.

The chat format requires that the end of a rendered chat does not depend on earlier messages, and
that earlier parts never change when the chat grows. `ChatFormat.check` compares the tokens with
those of a longer chat with tools and rejects templates that do not meet these requirements.
Thoughts are excluded from the comparison: some templates drop the thoughts of earlier turns, while
a rollout keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from toolgym.generation.models import common_length
from toolgym.messages import Message, prompt_messages

_WORD: Final = "toolgym"
_USER: Final[Message] = {"role": "user", "content": _WORD}
_ASSISTANT: Final[Message] = {"role": "assistant", "content": _WORD}
_ADVICE = (
    "use --chat-template hermes, or a tokenizer with another chat template (that of a tool-calling"
    " model, or one made for training)"
)


@dataclass(frozen=True)
class _PlaceholderTurn:
    """The turn of a placeholder chat. Replies are rendered after it.

    Attributes:
        message: The message of the turn.
        ids: Tokens of the chat up to and including the turn.
        stops: Number of stop tokens in the chat up to the end of the turn; 0 if its message has no
            end token.
    """

    message: Message
    ids: list[int]
    stops: int

    @property
    def has_end(self) -> bool:
        """Whether the message ends with a token at which generation stops."""
        return self.stops > 0

    def tail(self, chat: list[int], stop: frozenset[int]) -> list[int]:
        """Return the tokens that follow the turn in a longer chat."""
        positions = [position for position, token in enumerate(chat) if token in stop]
        if 0 < self.stops <= len(positions):
            return chat[positions[self.stops - 1] + 1 :]
        # The common prefix is the turn. It has one more token if another end replaces the stop
        # token.
        return chat[common_length(self.ids, chat) + self.has_end :]


class ChatFormat:
    """The chat template of one tokenizer, for the chats of one environment.

    Args:
        model: The model. The model's generation config and the tokenizer declare which tokens end a
            turn.
        tokenizer: A tokenizer with a chat template.
        env: Any instance of the environment, whose tools are shown in the prompts.
        options: Arguments for the chat template, such as `{"enable_thinking": False}`.

    Attributes:
        stop: The tokens that end a turn.

    Raises:
        ConfigurationError: If the template cannot be used. The message contains the reason and
            advice.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        env: ToolEnv[Any],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.stop = stop_ids(model, tokenizer)
        self._tokenizer = tokenizer
        self._tools: list[Any] = env.tool_schemas()
        sanitized = SANITIZED if can_sanitize(tokenizer, env) else {}
        self._options: dict[str, Any] = {**sanitized, **(options or {})}
        self._call_turns: dict[str, _PlaceholderTurn] = {}
        self._needs_calls = needs_calls(tokenizer)
        (self._user,) = self._encoded([[_USER]], prompted=False)
        self._text_turn = self._placeholder(_ASSISTANT)
        tool: Message = {"role": "tool", "name": next(iter(env.tools)), "content": _WORD}
        if not self._text_turn.has_end and not all(
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
        """The end-of-turn token, in a list that is empty if messages have no end token."""
        stops = [token for token in self._text_turn.ids if token in self.stop]
        return stops[-1:] if self._text_turn.has_end else []

    def prompts(self, envs: Sequence[ToolEnv[Any]]) -> list[list[int]]:
        """Return the tokens before the first turn in the current episode of each environment."""
        return self._encoded([prompt_messages(env) for env in envs], tools=self._tools)

    def following(self, replies: Sequence[Sequence[Message]]) -> list[list[int]]:
        """Return the tokens between one turn and the next.

        Args:
            replies: For each rollout, the messages that answer its turn: tool results, or a user
                message.

        Returns:
            For each rollout, the tokens between the end of the turn and the start of the next turn.
            If generation stopped at the opening of the next message, the token of this opening
            comes first.
        """
        turns = [self._turn_before(reply) for reply in replies]
        chats = self._encoded(
            [[_USER, turn.message, *reply] for turn, reply in zip(turns, replies, strict=True)]
        )
        return [turn.tail(chat, self.stop) for turn, chat in zip(turns, chats, strict=True)]

    def response(self, turn: Sequence[int], before: Sequence[int]) -> str:
        """Return the text of a turn as the environment reads it.

        Args:
            turn: Tokens of the turn. The text excludes the token that ended the turn.
            before: Tokens before the turn. A thinking tag at the end of these tokens belongs to the
                turn.
        """
        without_stop = turn[:-1] if turn and turn[-1] in self.stop else turn
        return opened_thought(self._text(before[-16:])) + self._text(without_stop)

    def check(self, env: ToolEnv[Any]) -> None:
        """Check that a rendered chat equals its prompt and turns with the result tokens appended.

        Args:
            env: The environment, after `reset`.

        Raises:
            ConfigurationError: If the template drops a result, or renders earlier messages or the
                end of a chat differently when the chat grows.
        """
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
            turn = self._turn_before(reply).message
            if not turn.get("tool_calls"):
                content = call if reply[0]["role"] == "tool" else "toolgym_remark"
                turn = {"role": "assistant", "content": content}
            (tail,) = self.following([reply])
            (earlier,) = self._encoded([so_far], tools=self._tools, prompted=False)
            so_far = [*so_far, turn, *reply]
            (whole,) = self._encoded([so_far], tools=self._tools)
            shown = self._text(tail)
            missing = [each["content"] for each in reply if each["content"] not in shown]
            problem = ""
            if missing:
                problem = f"drops the tool result or message {missing[0]!r}"
            elif whole[: len(earlier)] != earlier:
                problem = "changes earlier messages when the chat continues"
            elif whole[len(whole) - len(tail) :] != tail:
                problem = "renders the end of a chat depending on its beginning"
            if problem:
                raise ConfigurationError(
                    f"the chat template {problem}, so a rollout cannot consist of the sampled"
                    f" tokens: {_ADVICE}. It renders:\n{self._text(whole)[-1500:]}"
                )

    def _turn_before(self, reply: Sequence[Message]) -> _PlaceholderTurn:
        if reply[0]["role"] != "tool" or not self._needs_calls:
            return self._text_turn
        name = str(reply[0]["name"])
        if name not in self._call_turns:
            function = {"name": name, "arguments": {}}
            calls = [{"type": "function", "function": function}]
            message = {"role": "assistant", "content": "", "tool_calls": calls}
            self._call_turns[name] = self._placeholder(message)
        return self._call_turns[name]

    def _placeholder(self, message: Message) -> _PlaceholderTurn:
        (ids,) = self._encoded([[_USER, message]], prompted=False)
        begin = common_length(self._user, ids)
        ends = [position for position in range(begin, len(ids)) if ids[position] in self.stop]
        stops = sum(token in self.stop for token in ids[: ends[-1] + 1]) if ends else 0
        return _PlaceholderTurn(message, ids, stops)

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
                f"the chat template cannot render a chat with tool results ({problem}): {_ADVICE}."
            ) from problem
        return [list(each) for each in ids]
