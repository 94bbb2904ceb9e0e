"""Chat templates for models that have none, or one that does not show tools.

`hermes` shows the tools as JSON schemas and writes calls and results in tags. Any other name is the
path of a Jinja file.

A model has to be able to stop at the end of its turn. With `hermes` its turns end with the
tokenizer's `eos_token`. That is `<|im_end|>` if the tokenizer has it as one token, else the present
one, since generation cannot stop at a text of several tokens, and a new token would have to be
learned. The turns of others end with `<|im_end|>`. With a file, turns end as the template writes,
and that token becomes the `eos_token`.

The tokenizer is saved with the template, so a checkpoint needs no option.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jinja2 import TemplateSyntaxError

from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HERMES: Final = "hermes"
"""Name of the template of this package."""
END_OF_TURN: Final = "<|im_end|>"

_WORDS: Final = ("toolgym_question", "toolgym_answer")
_CHAT: Final = [
    {"role": "user", "content": _WORDS[0]},
    {"role": "assistant", "content": _WORDS[1]},
]


@dataclass(frozen=True)
class ChatTemplate:
    """A chat template.

    Attributes:
        name: `hermes`, or the path of a file.
        text: The Jinja template.
    """

    name: str
    text: str

    @classmethod
    def named(cls, name: str) -> ChatTemplate:
        """Read a template and render a short chat with it; PyTorch is not loaded.

        Raises:
            ConfigurationError: There is no such template or file, or it cannot render a chat.
        """
        if name == HERMES:
            return cls(name, Path(__file__).with_name("hermes.jinja").read_text())
        try:
            template = cls(name, Path(name).expanduser().read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigurationError(
                f"there is no chat template {name!r} ({problem}): choose hermes, or name"
                " a file with a Jinja template."
            ) from problem
        template.render()
        return template

    def render(self, **special_tokens: str) -> str:
        """A question and an answer, as transformers renders them.

        Raises:
            ConfigurationError: The template cannot be compiled, raises an error, or does not show
                the messages.
        """
        from transformers.utils.chat_template_utils import render_jinja_template

        tokens = {"bos_token": "", "eos_token": "", **special_tokens}
        try:
            rendered, _ = render_jinja_template([_CHAT], chat_template=self.text, **tokens)
        except TemplateSyntaxError as problem:
            raise ConfigurationError(
                f"the chat template {self.name} is no Jinja template: line {problem.lineno}:"
                f" {problem.message}"
            ) from problem
        except Exception as problem:  # an expression of a template can raise anything
            raise ConfigurationError(
                f"the chat template {self.name} refuses a question and an answer: {problem}."
            ) from problem
        if not all(word in rendered[0] for word in _WORDS):
            raise ConfigurationError(
                f"the chat template {self.name} does not show the messages of a chat: write a Jinja"
                " template over `messages`, as a tokenizer's chat_template is."
            )
        return str(rendered[0])


def with_chat_template(
    tokenizer: PreTrainedTokenizerBase,
    template: str | ChatTemplate,
    model: PreTrainedModel | None = None,
) -> PreTrainedTokenizerBase:
    """A copy of a tokenizer with another chat template.

    Args:
        tokenizer: The tokenizer; it is not changed.
        template: `hermes`, the path of a Jinja file, or a `ChatTemplate`.
        model: Its generation config gets the token that ends a turn, besides its own.

    Raises:
        ConfigurationError: There is no such template, or no token could end its turns.
    """
    from adapters.tiny.tokenizer import response_template

    chosen = ChatTemplate.named(template) if isinstance(template, str) else template
    made = copy.deepcopy(tokenizer)
    for former in ("response_template", "response_schema"):  # of the former template
        if getattr(made, former, None) is not None:
            setattr(made, former, None)
    made.chat_template = chosen.text
    added = made.get_added_vocab()
    if chosen.name != HERMES:
        special = {name: str(token) for name, token in made.special_tokens_map.items()}
        end = chosen.render(**special).rpartition(_WORDS[1])[2].lstrip()
        made.eos_token = max(filter(end.startswith, added), key=len, default=made.eos_token)
    else:
        if END_OF_TURN in added:
            made.eos_token = END_OF_TURN
        if not made.eos_token:
            raise ConfigurationError(
                f"the tokenizer has neither {END_OF_TURN} nor an eos_token, so no turn of"
                f" --chat-template hermes could end: set tokenizer.eos_token and save it."
            )
        # `apply_chat_template` does not add the token that begins each text of some models.
        ids = made("")["input_ids"]
        if made.bos_token_id is not None and list(ids[:1]) == [made.bos_token_id]:
            made.chat_template = "{{- bos_token -}}\n" + chosen.text
        made.response_template = response_template(str(made.eos_token))
    config = getattr(model, "generation_config", None)
    if config is not None and made.eos_token_id is not None:
        declared = config.eos_token_id
        ends = declared if isinstance(declared, list) else [] if declared is None else [declared]
        if made.eos_token_id not in ends:
            config.eos_token_id = [made.eos_token_id, *ends]
    return made
