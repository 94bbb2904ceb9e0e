"""The chat format of the tiny model: ChatML, as short as it can be.

A transcript's length is the cost of training on it. Rendered with a Qwen template, the JSON schemas
of the tools alone are several hundred tokens; here the tools are bare names and the system message
is left out, since a model that is trained from scratch learns the tools from demonstrations and
could not read a manual. What opens a turn, role and line break included, is one token.

The format has what trainers ask for: earlier turns render the same whatever follows them, `{%
generation %}` marks what the model wrote with the token that ends its turn inside, and
`RESPONSE_TEMPLATE` tells transformers (5.13 and newer) how to read a turn back into a message.
"""

from __future__ import annotations

from typing import Any, Final

PAD: Final = "<|endoftext|>"
END_OF_TURN: Final = "<|im_end|>"
ROLES: Final = ("tools", "user", "assistant", "tool")


def header(role: str) -> str:
    """What opens a turn of this role; one token."""
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

RESPONSE_TEMPLATE: Final[dict[str, Any]] = {
    "defaults": {"role": "assistant"},
    "start_anchor": header("assistant"),
    "fields": {
        "tool_calls": {
            "open": CALL_TOKENS[0],
            "close_pattern": r"</tool_call>\s*",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close_pattern": r"<\|im_end\|>\s*", "content": "text"},
    },
}
