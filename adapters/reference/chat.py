"""The chat format: prompts and tool results as tokens, appended and never rendered again.

A rollout is a growing list of tokens. The prompt is rendered once; a turn is the tokens that were
sampled; and what comes between a turn and the next (the end of one message, the results, the
opening of the next) is rendered on its own, as the tail of a short invented chat. Earlier turns are
never rendered again: a model that is trained on other tokens than it sampled learns from somebody
else's words, and a text that is decoded and encoded again often gives other tokens.

That is right for templates whose tail does not depend on what stands before it, and that leave
alone what they rendered earlier. `check_template` holds a longer chat with tools against it, and
refuses the others. Thoughts are outside that bargain: some templates drop those of earlier turns
when they render a chat anew; here the model keeps them, since it did think them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.tokenized_examples import SANITIZED, can_sanitize, stop_ids
from toolgym.calls import opened_thought
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, prompt_messages

_WORD = "toolgym"
_INVENTED: list[Message] = [
    {"role": "user", "content": _WORD},
    {"role": "assistant", "content": _WORD},
]
_CURE = (
    "take --chat-template hermes, or a tokenizer with another chat template (that of a tool-calling"
    " model, or one made for training), or use --trainer trl"
)


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
        (invented,) = self._encoded([_INVENTED], prompted=False)
        self._stops_before = sum(token in self.stop for token in invented)
        if not self._stops_before or _WORD in self._text(_after(invented, self.stop, -1)):
            names = ", ".join(repr(tokenizer.decode([token])) for token in sorted(self.stop))
            raise ConfigurationError(
                "the chat template ends the assistant's turn with none of the tokens at which"
                f" generation stops ({names or 'there are none'}): set the tokenizer's eos_token,"
                " or generation_config.eos_token_id, to the token that ends a turn."
            )
        tool = {"role": "tool", "name": next(iter(env.tools)), "content": _WORD}
        (tail,) = self.following([[tool]])
        self._opening = opened_thought(self._text(tail[-16:]))

    def prompts(self, envs: Sequence[ToolEnv[Any]]) -> list[list[int]]:
        """The tokens before the first turn of each environment's current episode."""
        return self._encoded([prompt_messages(env) for env in envs], tools=self._tools)

    def following(self, replies: Sequence[Sequence[Message]]) -> list[list[int]]:
        """The tokens between a turn and the next.

        Args:
            replies: For each rollout, the messages that answer its turn: results, or a remark.

        Returns:
            What follows the token that ended the turn, up to where the next turn begins.
        """
        chats = self._encoded([[*_INVENTED, *reply] for reply in replies])
        return [_after(chat, self.stop, self._stops_before) for chat in chats]

    def response(self, turn: Sequence[int]) -> str:
        """The text of a turn as the environment reads it: without the token that ended it."""
        without_stop = turn[:-1] if turn and turn[-1] in self.stop else turn
        return self._opening + self._text(without_stop)

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
    for before, reply in _growing_chat(env):
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


def _growing_chat(env: ToolEnv[Any]) -> Iterator[tuple[list[Message], list[Message]]]:
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
        so_far = [*so_far, {"role": "assistant", "content": response}]
        yield so_far, reply
        so_far = [*so_far, *reply]


def _after(tokens: Sequence[int], stop: frozenset[int], count: int) -> list[int]:
    """The tokens behind the `count`-th stop token, or behind the last with -1; else none."""
    places = [place for place, token in enumerate(tokens) if token in stop]
    if not places or count > len(places):
        return []
    return list(tokens[places[count - 1 if count > 0 else -1] + 1 :])


def _refusal(what: str, text: str) -> ConfigurationError:
    return ConfigurationError(
        f"the chat template {what}, so a rollout cannot be kept as the tokens that were sampled:"
        f" {_CURE}. It renders:\n{text[-1500:]}"
    )
