"""A small byte-level BPE tokenizer that is trained on the transcripts of an environment.

Three choices make transcripts short and copying easy:

- Digits are single tokens.
- A word includes its underscores, so `table_name` is one token everywhere.
- The fixed parts of a JSON call (`", "arguments": {"` and the like) are single tokens. An argument
  padded with `null` costs two tokens.

Training takes about a second. The result is a transformers tokenizer with a chat template, which
`AutoTokenizer.from_pretrained` loads. The tokenizer can encode any text.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from toolgym.env import ToolEnv
from toolgym.messages import Message, episode_messages

# The format has the properties that trainers need. Earlier turns are rendered the same whatever
# follows, and `{% generation %}` marks the text of the model with the token that ends its turn.


PAD: Final = "<|endoftext|>"
END_OF_TURN: Final = "<|im_end|>"
ROLES: Final = ("tools", "user", "assistant", "tool")


def header(role: str) -> str:
    """Return the header of a turn with the given role, which is one token."""
    return f"<|im_start|>{role}\n"


CONTROL_TOKENS: Final = (PAD, END_OF_TURN, *map(header, ROLES))
CALL_TOKENS: Final = ("<tool_call>", "</tool_call>")

CHAT_TEMPLATE: Final = """\
{%- macro call(function) -%}
<tool_call>
{"name": "{{ function.name }}", "arguments": {{ function.arguments if function.arguments is string \
else function.arguments | tojson }}}
</tool_call>
{%- endmacro -%}
{%- if tools -%}
{{- '<|im_start|>tools\\n' -}}
{%- for tool in tools -%}
{{- ' ' + (tool.function if tool.function is defined else tool).name -}}
{%- endfor -%}
{{- '<|im_end|>' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- '<|im_start|>assistant\\n' -}}
{%- generation -%}
{{- message.content if message.content is string else '' -}}
{%- for each in message.tool_calls or [] -%}
{{- call(each.function if each.function is defined else each) -}}
{%- endfor -%}
{{- '<|im_end|>' -}}
{%- endgeneration -%}
{%- elif message.role in ('user', 'tool') -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""


def response_template(end: str) -> dict[str, Any]:
    """Return the template with which transformers (5.13 and later) parses a turn into a message.

    Args:
        end: The token that ends a turn.
    """
    tool_calls = {
        "open": "<tool_call>",
        "close_pattern": r"</tool_call>\s*",
        "repeats": True,
        "content": "json",
        "transform": {"type": "function", "function": "{content}"},
    }
    content = {"close_pattern": re.escape(end) + r"\s*", "content": "text"}
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": header("assistant"),
        "fields": {"tool_calls": tool_calls, "content": content},
    }


# During reinforcement learning a model makes mistakes, reads error messages, and may pad its calls
# with nulls. Such text must not take many more tokens than correct calls, or transcripts exceed the
# length limits. So the tokenizer is also trained on such transcripts; the model is not.

_NONSENSE = "x"


def null_padded(transcript: Sequence[Message], tools: Sequence[dict[str, Any]]) -> list[Message]:
    """Return a transcript whose calls have all tools' arguments, with null for missing ones.

    Args:
        transcript: Chat messages, which are not changed.
        tools: Tool schemas in the OpenAI function format.
    """
    names = [key for tool in tools for key in tool["function"]["parameters"]["properties"]]
    padded: list[Message] = copy.deepcopy(list(transcript))
    for message in padded:
        for call in message.get("tool_calls") or []:
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = {
                name: arguments.get(name) for name in [*names, *arguments]
            }
    return padded


def mistakes(env: ToolEnv[Any], task_ids: Sequence[str]) -> list[list[Message]]:
    """Return transcripts with mistakes: no call, an unknown tool, missing or wrong arguments.

    Args:
        env: The environment. Any current episode of the environment is ended.
        task_ids: Ids of the tasks. One transcript is made for each task.
    """
    actions: list[Any] = [{"name": _NONSENSE, "arguments": {}}, _NONSENSE]
    for name, spec in env.tools.items():
        if not spec.terminal:
            actions.append({"name": name, "arguments": {}})
            actions.append({"name": name, "arguments": dict.fromkeys(spec.required, _NONSENSE)})
    transcripts = []
    for task_id in task_ids:
        env.reset(options={"task_id": task_id})
        for action in actions:
            if not env.episode.over:
                env.step(action)
        transcripts.append(episode_messages(env))
    return transcripts


VOCABULARY: Final = 1024

# The fixed parts of a call, then one digit, a word, a quote, other punctuation, spaces.
_PIECES: Final = "|".join(
    [
        r"\n?\{\"name\": \"",
        r"\", \"arguments\": \{\"?",
        r"\": null, \"",
        r"\": null\}\}\n?",
        r"\": \"",
        r"\", \"",
        r"\"\}\}\n?",
        r"\": ",
        r"\}\}\n?",
        r"\p{N}",
        r" ?[\p{L}_]+",
        r"\"",
        r" ?[^\s\p{L}\p{N}_\"]+",
        r"\s+",
    ]
)


def train_tokenizer(
    transcripts: Iterable[Sequence[Message]], vocabulary: int = VOCABULARY
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on chat messages.

    Args:
        transcripts: Chat messages of the training split.
        vocabulary: Maximum size of the vocabulary, including bytes and control tokens.

    Returns:
        A tokenizer with the chat format. The tokenizer pads on the left. The same transcripts
        always produce
        the same tokenizer.
    """
    core = Tokenizer(models.BPE())
    pieces = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([pieces, byte_level])
    core.decoder = decoders.ByteLevel()
    control = [AddedToken(t, special=True, normalized=False) for t in CONTROL_TOKENS]
    calls = [AddedToken(t, special=False, normalized=False) for t in CALL_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(calls),
        special_tokens=control,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = (text for transcript in transcripts for text in _texts(transcript))
    core.train_from_iterator(texts, trainer)
    core.add_tokens(calls)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=END_OF_TURN,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.response_template = response_template(END_OF_TURN)
    return tokenizer


def _texts(transcript: Sequence[Message]) -> Iterator[str]:
    """Yield the pieces of text between the control tokens of a rendered transcript."""
    for message in transcript:
        if message["role"] == "system":
            continue  # the chat format omits it
        if message.get("content"):
            yield message["content"]
        for call in message.get("tool_calls") or []:
            function = call["function"]
            yield f" {function['name']}"  # in the form of the list of tools
            yield "\n" + json.dumps(function, ensure_ascii=False) + "\n"
