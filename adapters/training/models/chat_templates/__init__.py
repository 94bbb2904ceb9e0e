"""Chat templates for models that have none, or whose template does not show tools.

`hermes` shows the tools as JSON schemas and encloses calls and results in tags. Any other name is
the path of a Jinja file.

The template decides which token ends a turn:

- With `hermes` the turns of the model end with the tokenizer's `eos_token`. The `eos_token` is set
  to `<|im_end|>` if the tokenizer encodes this string as one token. Otherwise the `eos_token` is
  unchanged, since generation cannot stop at a string of several tokens, and the model would have to
  learn a new token. All other turns end with `<|im_end|>`.
- With a file, turns end with the token that the template writes, which becomes the `eos_token`.

The tokenizer is saved with the template, so the option is not needed when a checkpoint is loaded.
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
"""Name of the template that this package provides."""
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
        """Read a template and render a short chat with it, without importing PyTorch.

        Raises:
            ConfigurationError: If there is no such template or file, or it cannot render a chat.
        """
        if name == HERMES:
            return cls(name, Path(__file__).with_name("hermes.jinja").read_text())
        try:
            template = cls(name, Path(name).expanduser().read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as problem:
            raise ConfigurationError(
                f"there is no chat template {name!r} ({problem}). Use hermes or the path of a file"
                " with a Jinja template."
            ) from problem
        template.render()
        return template

    def render(self, **special_tokens: str) -> str:
        """Render a question and an answer in the same way as transformers.

        Raises:
            ConfigurationError: If the template cannot be compiled, raises an error, or does not
                show the messages.
        """
        from transformers.utils.chat_template_utils import render_jinja_template

        tokens = {"bos_token": "", "eos_token": "", **special_tokens}
        try:
            rendered, _ = render_jinja_template([_CHAT], chat_template=self.text, **tokens)
        except TemplateSyntaxError as problem:
            raise ConfigurationError(
                f"the chat template {self.name} is not a Jinja template: line {problem.lineno}:"
                f" {problem.message}"
            ) from problem
        except Exception as problem:  # expressions of a template can raise any exception
            raise ConfigurationError(
                f"the chat template {self.name} cannot render a question and an answer: {problem}."
            ) from problem
        if not all(word in rendered[0] for word in _WORDS):
            raise ConfigurationError(
                f"the chat template {self.name} does not show the messages of a chat. Write a Jinja"
                " template over `messages`, in the form of a tokenizer's chat_template."
            )
        return str(rendered[0])


def with_chat_template(
    tokenizer: PreTrainedTokenizerBase,
    template: str | ChatTemplate,
    model: PreTrainedModel | None = None,
) -> PreTrainedTokenizerBase:
    """Return a copy of a tokenizer with another chat template.

    Args:
        tokenizer: The tokenizer, which is not changed.
        template: `hermes`, the path of a Jinja file, or a `ChatTemplate`.
        model: Model to whose generation config the end-of-turn token is added.

    Raises:
        ConfigurationError: If there is no such template, or the tokenizer has no token that can end
            its turns.
    """
    from adapters.tiny.tokenizer import response_template

    chosen = ChatTemplate.named(template) if isinstance(template, str) else template
    made = copy.deepcopy(tokenizer)
    for former in ("response_template", "response_schema"):  # belong to the previous template
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
                f"the tokenizer has neither {END_OF_TURN} nor an eos_token, so turns of"
                " --chat-template hermes cannot end. Set tokenizer.eos_token and save it."
            )
        # `apply_chat_template` does not add the token that begins every text of some models.
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
