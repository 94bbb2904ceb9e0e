"""Chat templates for models that have none, or one that does not show tools.

`hermes` shows the tools as JSON schemas and writes calls and results in tags; `chatml` tells the
tools in words (`toolgym.messages.tools_in_words`), and results are plain text. Any other name is
the path of a Jinja file. Names and files are looked at before PyTorch is loaded.

A model has to be able to stop at the end of its turn. In the two templates here its turns end with
the tokenizer's `eos_token`: that is `<|im_end|>` where the tokenizer has it as one token, and else
the token that it has, since what is cut into several tokens ends no generation, and a token that is
new to the model would have to be learnt from nothing. The turns of others end with `<|im_end|>` in
either case: to a base model its own `eos_token` says that what follows is another text. A file's
turn ends as it writes, and that token becomes the `eos_token`.

The tokenizer carries all of it, so a checkpoint that was saved with it needs no option.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from toolgym.errors import ConfigurationError
from toolgym.messages import TOOLS_IN_WORDS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

NAMED: Final = ("hermes", "chatml")
"""The templates that have a name; `--chat-template` takes the path of another."""
END_OF_TURN: Final = "<|im_end|>"

_HERE: Final = Path(__file__).parent
_PARTS: Final = {"calls.jinja": _HERE / "calls.jinja", TOOLS_IN_WORDS.name: TOOLS_IN_WORDS}
_SLIPS: Final = (AttributeError, LookupError, TypeError, ValueError)
"""What Python raises inside of a template that does not fit a chat."""
_WORDS: Final = ("toolgym_question", "toolgym_answer")
_CHAT: Final = [
    {"role": "user", "content": _WORDS[0]},
    {"role": "assistant", "content": _WORDS[1]},
]


@dataclass(frozen=True)
class ChatTemplate:
    """A chat template.

    Attributes:
        name: One of `NAMED`, or a path.
        text: The template itself, in Jinja.
    """

    name: str
    text: str

    @classmethod
    def named(cls, name: str) -> ChatTemplate:
        """The template of a name, or in a file.

        Raises:
            ConfigurationError: There is neither, or the file is no template of chats.
        """
        if name in NAMED:
            text = (_HERE / f"{name}.jinja").read_text(encoding="utf-8")
            for part, file in _PARTS.items():
                mark = f'{{%- include "{part}" -%}}'
                text = text.replace(mark, file.read_text(encoding="utf-8").strip())
            return cls(name, text)
        file = Path(name).expanduser()
        if not file.is_file():
            near = get_close_matches(name, NAMED, n=1, cutoff=0.7)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(
                f"there is no chat template {name!r}: take {' or '.join(NAMED)}, or name a file"
                f" with a Jinja template.{hint}"
            )
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigurationError(
                f"the chat template {name} cannot be read: {problem}."
            ) from problem
        _check(name, text)
        return cls(name, text)

    def applied_to(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedTokenizerBase:
        """A copy of a tokenizer that has this template, and the token that ends its turns.

        Raises:
            ConfigurationError: The tokenizer has no token that could end a turn.
        """
        made = copy.deepcopy(tokenizer)
        # A former template's: it says how the responses of that one are read.
        for former in ("response_template", "response_schema"):
            if getattr(made, former, None) is not None:
                setattr(made, former, None)
        if self.name not in NAMED:
            made.chat_template = self.text
            end = self._written_end(made)
            if end is not None:
                made.eos_token = end
            return made
        if END_OF_TURN in made.get_added_vocab():
            made.eos_token = END_OF_TURN
        if not made.eos_token:
            raise ConfigurationError(
                f"the tokenizer has neither {END_OF_TURN} nor an eos_token, so no turn of"
                f" --chat-template {self.name} could end: set tokenizer.eos_token and save it."
            )
        # The tokens of a chat are encoded without those that the tokenizer adds by itself.
        begins = "{{- bos_token -}}\n" if _begins_texts(made) else ""
        made.chat_template = begins + self.text
        made.response_template = _response_template(str(made.eos_token))
        return made

    def _written_end(self, tokenizer: PreTrainedTokenizerBase) -> str | None:
        """The token that the template writes at the end of a turn; None if it is none.

        Raises:
            ConfigurationError: The template refuses a short chat.
        """
        try:
            text = str(tokenizer.apply_chat_template(_CHAT, tokenize=False))
        except (TemplateError, *_SLIPS) as problem:
            raise ConfigurationError(
                f"the chat template {self.name} refuses a question and an answer: {problem}."
            ) from problem
        behind = text.rpartition(_WORDS[1])[2].lstrip()
        ends = [token for token in tokenizer.get_added_vocab() if behind.startswith(token)]
        return max(ends, key=len, default=None)


def with_chat_template(
    tokenizer: PreTrainedTokenizerBase,
    template: str | ChatTemplate,
    model: PreTrainedModel | None = None,
) -> PreTrainedTokenizerBase:
    """A copy of a tokenizer with another chat template.

    Args:
        tokenizer: It stays as it is.
        template: `hermes`, `chatml`, the path of a Jinja file, or a `ChatTemplate`.
        model: Its generation config gets the token that ends a turn, beside those that it has.

    Raises:
        ConfigurationError: There is no such template, or no token could end its turns.
    """
    chosen = ChatTemplate.named(template) if isinstance(template, str) else template
    made = chosen.applied_to(tokenizer)
    config = getattr(model, "generation_config", None)
    if config is not None and made.eos_token_id is not None:
        declared = config.eos_token_id
        ends = declared if isinstance(declared, list) else [] if declared is None else [declared]
        if made.eos_token_id not in ends:
            config.eos_token_id = [made.eos_token_id, *ends]
    return made


def _begins_texts(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the tokenizer puts its `bos_token` before every text, as in the model's training."""
    ids = tokenizer("")["input_ids"]
    return tokenizer.bos_token_id is not None and list(ids[:1]) == [tokenizer.bos_token_id]


def _response_template(end: str) -> dict[str, Any]:
    """The way for transformers (5.13 and newer) to read a turn back into a message."""
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "tool_calls": {
                "open": "<tool_call>",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            },
            "content": {"close_pattern": re.escape(end) + r"\s*", "content": "text"},
        },
    }


# A file is tried as transformers would use it, but without it: the tags that it knows, and the
# functions that templates call.


class _Generation(Extension):
    """The tag `generation`, which marks the assistant's words; here it only holds them."""

    tags: set[str] = {"generation"}  # noqa: RUF012  # as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """What stands between the tag and its end."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _check(name: str, text: str) -> None:
    """Make sure that a file is a template that shows what a chat holds.

    Raises:
        ConfigurationError: It is not.
    """
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: form}
    known = {"bos_token": "", "eos_token": "", "add_generation_prompt": False, "tools": None}
    try:
        shown = environment.from_string(text).render(messages=_CHAT, **known)
    except TemplateSyntaxError as problem:
        raise ConfigurationError(
            f"the chat template {name} is no Jinja template: line {problem.lineno}:"
            f" {str(problem.message).rstrip('.')}."
        ) from problem
    except (TemplateError, ArithmeticError, *_SLIPS) as problem:
        raise ConfigurationError(
            f"the chat template {name} refuses a question and an answer: {problem}."
        ) from problem
    if not all(word in shown for word in _WORDS):
        raise ConfigurationError(
            f"the chat template {name} does not show the messages of a chat: it has to be a Jinja"
            " template over `messages`, as a tokenizer's chat_template is."
        )


def _refuse(message: str) -> None:
    raise TemplateError(message)
