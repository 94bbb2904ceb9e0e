"""Chat templates of our own for each kind of family: its roles, its calls, its results, its ends.

One Jinja template serves all: it takes the texts around messages from `Family`, and the form of a
call from a macro. What differs between families in more than texts is kept as they have it: the
token at which a turn stops may be the one that opens the next message (GLM), that opens the result
within the same turn (Gemma 4), or another for a call than for an answer (gpt-oss); a prompt may
open reasoning at every turn or only at the first; a result may be refused, or left out, where no
call stands before it.

The calls here are written by Jinja and not by `toolgym.calls.render_call`, so that both are held
against the parser.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from toolgym import registration
from toolgym.messages import system_prompt

Call = tuple[str, dict[str, Any]]
Pair = tuple[str, str]
PAD = "<|pad|>"


@dataclass(frozen=True, kw_only=True)
class Family:
    """The chat template and the control tokens of one kind of family.

    Attributes:
        format: Of its calls, in `toolgym.calls.FORMATS`.
        call: Jinja of one call, with `name`, `arguments` and `index`.
        calls: Around all calls of a message.
        between: Between two of them; None where a message holds one.
        begin: Before all messages.
        system: Around the system message; so for `user`.
        assistant: Before the assistant's message.
        history: Behind that in a chat that goes on, where the thought was.
        thought: Behind it in a prompt: what opens reasoning.
        resume: The prompt after a result, where it differs.
        text: Around an answer without calls.
        last_end: Closes the last message of a chat in place of `text[1]`.
        call_end: Closes a message with calls.
        results: Around all results.
        result: Around one; `NAME` stands for the tool.
        joint: Between two.
        orphans: What becomes of results without a call before them: kept, dropped or refused.
        stop: The tokens at which generation stops; the first is the tokenizer's.
        said: The tokens that a model stops with, after an answer and after calls, where the
            template does not write them at the end of a message.
        control: Other control tokens.
        words: Other tokens of their own, which are no control tokens.
    """

    format: str
    call: str
    calls: Pair = ("", "")
    between: str | None = ""
    begin: str = ""
    system: Pair
    user: Pair
    assistant: str
    history: str = ""
    thought: str = ""
    resume: str | None = None
    text: Pair
    last_end: str | None = None
    call_end: str
    results: Pair = ("", "")
    result: Pair
    joint: str = ""
    orphans: str = "kept"
    stop: tuple[str, ...]
    said: Pair = ("", "")
    control: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def thinking(self) -> Pair:
        """What opens and what closes reasoning, as a model of this family writes it."""
        return _THINKING.get(self.format, ("<think>", "</think>"))

    @property
    def opens_thought(self) -> bool:
        """Whether the first prompt ends inside reasoning."""
        return (self.assistant + self.thought).endswith(self.thinking[0])

    def chat_template(self) -> str:
        """The template, in Jinja."""
        marks = {key: each for key, each in asdict(self).items() if key != "call"}
        return f"{{%- set m = {marks} -%}}" + _CHAT.replace("CALL", self.call)


_VALUE = """
{%- macro bare(value) -%}{{- value if value is string else value | tojson -}}{%- endmacro -%}
{%- macro literal(value) -%}
{{- value | tojson if value is string or value is mapping else value | string -}}
{%- endmacro -%}
{%- macro braces(value) -%}
{%- if value is string -%}<|"|>{{- value -}}<|"|>
{%- elif value is mapping -%}
{
{%- for key, each in value.items() -%}
{{- ',' if not loop.first -}}{{- key -}}:{{- braces(each) -}}
{%- endfor -%}
}
{%- else -%}{{- value | tojson -}}{%- endif -%}
{%- endmacro -%}
"""
_CHAT = (
    _VALUE
    + """
{%- macro call_of(name, arguments, index) %}CALL{% endmacro -%}
{%- set ns = namespace(called=false) -%}
{{- m.begin -}}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{{- m.assistant + m.history -}}
{%- set ns.called = message.tool_calls is defined and message.tool_calls -%}
{%- if ns.called -%}
{{- message.content + m.calls[0] -}}
{%- for each in message.tool_calls -%}
{{- m.between if not loop.first -}}
{{- call_of(each.function.name, each.function.arguments, loop.index0) -}}
{%- endfor -%}
{{- m.calls[1] + m.call_end -}}
{%- else -%}
{%- set is_last = loop.last and not add_generation_prompt and m.last_end is not none -%}
{{- m.text[0] + message.content + (m.last_end if is_last else m.text[1]) -}}
{%- endif -%}
{%- elif message.role == 'tool' -%}
{%- if not ns.called and m.orphans == 'refused' -%}{{- raise_exception('no call') -}}{%- endif -%}
{%- if ns.called or m.orphans != 'dropped' -%}
{{- m.results[0] if loop.previtem.role != 'tool' else m.joint -}}
{{- m.result[0] | replace('NAME', message.name) + message.content + m.result[1] -}}
{{- m.results[1] if loop.last or loop.nextitem.role != 'tool' -}}
{%- endif -%}
{%- else -%}
{{- m[message.role][0] + message.content -}}
{{- '\\n' + (tools | tojson) if tools and message.role == 'system' -}}
{{- m[message.role][1] -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{%- set told = messages[-1].role == 'tool' and (ns.called or m.orphans == 'kept') -%}
{{- m.resume if told and m.resume is not none else m.assistant + m.thought -}}
{%- endif -%}
"""
)

_OBJECT = '{"name": {{ name | tojson }}, "arguments": {{ arguments | tojson }}}'
_PYTHON = (
    "{{- name -}}({%- for key, value in arguments.items() -%}{{- ', ' if not loop.first -}}"
    "{{- key -}}={{- literal(value) -}}{%- endfor -%})"
)
_JSON = "{{ arguments | tojson }}"


def _each(pair: str) -> str:
    """Jinja of all arguments, each as `pair` has it."""
    return "{% for key, value in arguments.items() %}" + pair + "{% endfor %}"


_THINKING = {
    "mistral-args": ("[THINK]", "[/THINK]"),
    "harmony": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
    "command-a": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "gemma-4": ("<|channel>thought\n", "<channel|>"),
}
_CHATML: dict[str, Any] = {
    "system": ("<|im_start|>system\n", "<|im_end|>\n"),
    "user": ("<|im_start|>user\n", "<|im_end|>\n"),
    "assistant": "<|im_start|>assistant\n",
    "text": ("", "<|im_end|>\n"),
    "call_end": "<|im_end|>\n",
    "results": ("<|im_start|>user", "<|im_end|>\n"),
    "result": ("\n<tool_response>\n", "\n</tool_response>"),
    "stop": ("<|im_end|>",),
    "control": ("<|im_start|>",),
}
_TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
_BAR, _LOW = "\uff5c", "\u2581"


def _deep(*words: str) -> tuple[str, ...]:
    """DeepSeek's tokens, which have bars and spaces of their own."""
    return tuple(f"<{_BAR}{word.replace('_', _LOW)}{_BAR}>" for word in words)


_BEGIN, _USER, _ASSISTANT, _END = _deep("begin_of_sentence", "User", "Assistant", "end_of_sentence")
_CALLS, _CALLS_END, _CALL, _CALL_END, _SEP, _OUT, _OUT_END = _deep(
    "tool_calls_begin",
    "tool_calls_end",
    "tool_call_begin",
    "tool_call_end",
    "tool_sep",
    "tool_output_begin",
    "tool_output_end",
)
_DEEPSEEK: dict[str, Any] = {
    "begin": _BEGIN,
    "system": ("", ""),
    "user": (_USER, ""),
    "assistant": _ASSISTANT,
    "history": "</think>",
    "thought": "<think>",
    "text": ("", _END),
    "call_end": _END,
    "stop": (_END,),
}
_DSML = f"{_BAR}DSML{_BAR}"
_GLM: dict[str, Any] = {
    "begin": "[gMASK]<sop>",
    "system": ("<|system|>\n", ""),
    "user": ("<|user|>\n", ""),
    "assistant": "<|assistant|>",
    "call_end": "",
    "stop": ("<|endoftext|>", "<|user|>", "<|observation|>"),
    "said": ("<|user|>", "<|observation|>"),
    "control": ("[gMASK]", "<sop>", "<|system|>", "<|assistant|>"),
}

FAMILIES = (
    Family(
        format="hermes",
        call=f"<tool_call>\n{_OBJECT}\n</tool_call>",
        between="\n",
        words=_TAGS,
        **_CHATML,
    ),
    Family(
        format="mistral-args",
        call=f"[TOOL_CALLS]{{{{- name -}}}}[ARGS]{_JSON}",
        begin="<s>",
        system=("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        user=("[INST]", "[/INST]"),
        assistant="",
        text=("", "</s>"),
        call_end="</s>",
        result=("[TOOL_RESULTS]NAME[TOOL_CONTENT]", "[/TOOL_RESULTS]"),
        stop=("</s>",),
        control=(
            *("<s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CALLS]"),
            *("[ARGS]", "[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"),
            *("[THINK]", "[/THINK]"),
        ),
    ),
    Family(
        format="deepseek-v3.1",
        call=f"{_CALL}{{{{- name -}}}}{_SEP}{_JSON}{_CALL_END}",
        calls=(_CALLS, _CALLS_END),
        resume="",
        result=(_OUT, _OUT_END),
        control=(
            *(_BEGIN, _USER, _ASSISTANT, _CALLS, _CALLS_END, _CALL, _CALL_END),
            *(_SEP, _OUT, _OUT_END),
        ),
        **_DEEPSEEK,
    ),
    Family(
        format="kimi-k2",
        call="<|tool_call_begin|>functions.{{- name -}}:{{- index -}}<|tool_call_argument_begin|>"
        f"{_JSON}<|tool_call_end|>",
        calls=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        system=("<|im_system|>system<|im_middle|>", "<|im_end|>"),
        user=("<|im_user|>user<|im_middle|>", "<|im_end|>"),
        assistant="<|im_assistant|>assistant<|im_middle|>",
        text=("", "<|im_end|>"),
        call_end="<|im_end|>",
        result=("<|im_system|>NAME<|im_middle|>## Return of functions.NAME:0\n", "<|im_end|>"),
        stop=("<|im_end|>",),
        control=(
            *("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>"),
            *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"),
            *("<|tool_call_argument_begin|>", "<|tool_call_end|>"),
        ),
    ),
    Family(
        format="harmony",
        call=f" to=functions.{{{{- name -}}}}<|channel|>commentary json<|message|>{_JSON}",
        between=None,
        system=("<|start|>developer<|message|>", "<|end|>"),
        user=("<|start|>user<|message|>", "<|end|>"),
        assistant="<|start|>assistant",
        text=("<|channel|>final<|message|>", "<|end|>"),
        last_end="<|return|>",
        call_end="<|call|>",
        result=("<|start|>functions.NAME to=assistant<|channel|>commentary<|message|>", "<|end|>"),
        orphans="refused",
        stop=("<|return|>", "<|call|>"),
        control=("<|start|>", "<|message|>", "<|end|>", "<|channel|>", "<|constrain|>"),
    ),
    Family(
        format="llama-4",
        call=_PYTHON,
        calls=("<|python_start|>[", "]<|python_end|>"),
        between=", ",
        begin="<|begin_of_text|>",
        system=("<|header_start|>system<|header_end|>\n\n", "<|eot|>"),
        user=("<|header_start|>user<|header_end|>\n\n", "<|eot|>"),
        assistant="<|header_start|>assistant<|header_end|>\n\n",
        text=("", "<|eot|>"),
        call_end="<|eom|>",
        result=("<|header_start|>ipython<|header_end|>\n\n", "<|eot|>"),
        stop=("<|eot|>", "<|eom|>"),
        control=(
            *("<|begin_of_text|>", "<|header_start|>", "<|header_end|>"),
            *("<|python_start|>", "<|python_end|>"),
        ),
    ),
    Family(
        format="lfm2",
        call=_PYTHON,
        calls=("<|tool_call_start|>[", "]<|tool_call_end|>"),
        between=", ",
        **_CHATML
        | {
            "begin": "<|startoftext|>",
            "results": ("", ""),
            "result": (
                "<|im_start|>tool\n<|tool_response_start|>",
                "<|tool_response_end|><|im_end|>\n",
            ),
            "control": (
                *("<|startoftext|>", "<|im_start|>", "<|tool_call_start|>", "<|tool_call_end|>"),
                *("<|tool_response_start|>", "<|tool_response_end|>"),
            ),
        },
    ),
    Family(
        format="command-a",
        call='    {"tool_call_id": "{{- index -}}", "tool_name": {{ name | tojson }}, '
        f'"parameters": {_JSON}}}',
        calls=("<|START_ACTION|>[\n", "\n]<|END_ACTION|>"),
        between=",\n",
        begin="<BOS_TOKEN>",
        system=("<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        user=("<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
        assistant="<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
        history="<|END_THINKING|>",
        text=("<|START_RESPONSE|>", "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>"),
        call_end="<|END_OF_TURN_TOKEN|>",
        results=(
            "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><|START_TOOL_RESULT|>[\n",
            "\n]<|END_TOOL_RESULT|><|END_OF_TURN_TOKEN|>",
        ),
        result=('{"results": ', "}"),
        joint=",\n",
        stop=("<|END_OF_TURN_TOKEN|>",),
        control=(
            *("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>"),
            *("<|CHATBOT_TOKEN|>", "<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>"),
            *("<|END_ACTION|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TOOL_RESULT|>"),
            "<|END_TOOL_RESULT|>",
        ),
    ),
    Family(
        format="qwen3-coder",
        call="<tool_call>\n<function={{- name -}}>\n"
        + _each("<parameter={{- key -}}>\n{{ bare(value) }}\n</parameter>\n")
        + "</function>\n</tool_call>",
        between="\n",
        words=_TAGS,
        **_CHATML,
    ),
    Family(
        format="deepseek-v3.2",
        call=f'<{_DSML}invoke name="{{{{- name -}}}}">\n'
        + _each(
            f'<{_DSML}parameter name="{{{{- key -}}}}" '
            'string="{{- \'true\' if value is string else \'false\' -}}">'
            f"{{{{- bare(value) -}}}}</{_DSML}parameter>\n"
        )
        + f"</{_DSML}invoke>",
        calls=(f"\n\n<{_DSML}function_calls>\n", f"\n</{_DSML}function_calls>"),
        between="\n",
        resume="\n\n<think>",
        results=("\n\n<function_results>", "\n</function_results>"),
        result=("\n<result>", "</result>"),
        control=(_BEGIN, _USER, _ASSISTANT),
        words=("<think>", "</think>", _DSML),
        **_DEEPSEEK,
    ),
    Family(
        format="glm",
        call="{{ '\n' }}<tool_call>{{- name }}\n"
        + _each(
            "<arg_key>{{- key -}}</arg_key>\n<arg_value>{{- bare(value) -}}</arg_value>\n"
        )
        + "</tool_call>",
        history="\n<think></think>",
        text=("\n", ""),
        results=("<|observation|>", ""),
        result=("\n<tool_response>\n", "\n</tool_response>"),
        words=(
            *_TAGS,
            *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>"),
        ),
        **_GLM,
    ),
    Family(
        format="glm-4",
        call=f"{{{{- name }}}}\n{_JSON}",
        between="<|assistant|>",
        text=("\n", ""),
        result=("<|observation|>\n", ""),
        **_GLM,
    ),
    Family(
        format="gemma-4",
        call="<|tool_call>call:{{- name -}}{{- braces(arguments) -}}<tool_call|>",
        begin="<bos>",
        system=("<|turn>system\n", "<turn|>\n"),
        user=("<|turn>user\n", "<turn|>\n"),
        assistant="<|turn>model\n",
        resume="",
        text=("", "<turn|>\n"),
        call_end="<|tool_response>",
        result=('response:NAME{value:<|"|>', '<|"|>}<tool_response|>'),
        joint="<|tool_response>",
        orphans="dropped",
        stop=("<eos>", "<turn|>", "<|tool_response>"),
        control=(
            *("<bos>", "<|turn>", "<|tool_call>", "<tool_call|>", "<tool_response|>", '<|"|>'),
            *("<|channel>", "<channel|>"),
        ),
    ),
    Family(
        format="react",
        call=f"Action: {{{{ name }}}}\nAction Input: {_JSON}",
        between=None,
        **_CHATML | {"result": ("\nObservation: ", "")},
    ),
    Family(
        format="qwen-agent",
        call=f"\u273fFUNCTION\u273f: {{{{ name }}}}\n\u273fARGS\u273f: {_JSON}",
        between="\n",
        **_CHATML | {"result": ("\n\u273fRESULT\u273f: ", "\n\u273fRETURN\u273f")},
    ),
)  # fmt: skip
NAMED = {family.format: family for family in FAMILIES}


def tokenizer_of(family: Family, texts: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer with the template and the tokens of a family, which has read some texts."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learn = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False)
    inner.train_from_iterator([*texts, "read the note and answer"] * 20, learn)
    control = dict.fromkeys((PAD, *family.stop, *family.control))
    inner.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in control])
    inner.add_tokens([AddedToken(each, normalized=False) for each in family.words])
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=family.stop[0], pad_token=PAD, padding_side="left"
    )
    made.chat_template = family.chat_template()
    return made


def texts_of(env_id: str) -> tuple[str, ...]:
    """What a model is told of an environment, for a tokenizer that is to find few tokens in it."""
    env = registration.make(env_id)
    return (system_prompt(env), *(json.dumps(schema) for schema in env.tool_schemas()))


def model_of(family: Family, tokenizer: Any) -> Qwen3ForCausalLM:
    """A transformer of two layers with random weights that stops where the family does."""
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=8192,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids(list(family.stop))
    return model


def turn_of(
    tokenizer: Any,
    family: Family,
    content: str = "",
    calls: Sequence[Call] = (),
    later: bool = False,
) -> str:
    """What a model says in a turn, up to the token at which it stops, as the template renders it.

    Args:
        later: The turn follows a result.
    """
    asked = [{"role": "user", "content": "hello"}]
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in calls
        ]
    prompt = tokenizer.apply_chat_template(asked, tokenize=False) + family.assistant
    said = tokenizer.apply_chat_template([*asked, message], tokenize=False).removeprefix(prompt)
    if later and family.resume == "":
        said = said.removeprefix(family.history)
    elif family.opens_thought:
        said = f"I look. {said}"
    return str(said).rstrip("\n") + family.said[bool(calls)]


# The rollouts of a group on the notes of `tests.adapters.conftest`, for either trainer.

LONGEST = 420
"""Most tokens of a completion; the last rollout is cut off there."""
SPOKEN = ("right", "repaired", "wrong", "silent", "in a thought", "in an open thought", "cut off")


def group_of(tokenizer: Any, family: Family, task_id: str) -> list[list[str]]:
    """What the rollouts of a group say in their turns, in the order of `SPOKEN`."""

    def said(*calls: Call, later: bool = False) -> str:
        return turn_of(tokenizer, family, calls=calls, later=later)

    number = 10 + int(task_id.rpartition("-")[2])
    nulls = {"sql": None, "table_name": None}
    right, wrong = ("answer", {"value": number}), ("answer", {"value": 0})
    nothing = turn_of(tokenizer, family, "I do not know.")
    remark = turn_of(tokenizer, family, "I still do not know.")
    opening, closing = family.thinking
    stop = next(each for each in family.stop if said(right).endswith(each))
    thought = ("" if family.opens_thought else opening) + _body(said(right), family)
    thought = thought.removesuffix(stop)
    long = ("answer", {"value": number, "reason": "so " * LONGEST})
    return [
        [said(("read", {"note": task_id})), said(right, later=True)],
        [
            said(("Read_Note", {"note": task_id, **nulls})),
            said(("submit", {"value": number, **nulls}), later=True),
        ],
        [said(wrong)],
        [nothing, remark, remark],
        [f"{thought}{closing}{_body(nothing, family)}", said(wrong)],
        [thought + stop, said(wrong)],
        [said(long)],
    ]


def _body(said: str, family: Family) -> str:
    """A turn without the thought that it begins with."""
    said = said.removeprefix("I look. ") if family.opens_thought else said
    return said.removeprefix(family.history)


def encoded(tokenizer: Any, said: str) -> list[int]:
    """The tokens of a turn, as many as fit into a completion."""
    return list(tokenizer(said, add_special_tokens=False)["input_ids"][:LONGEST])


def told_between(tokenizer: Any, family: Family, task_id: str, result: str) -> str:
    """What stands between the first turn of `right` and its second, as the template renders it."""
    call = ("read", {"note": task_id})
    function = {"type": "function", "function": {"name": call[0], "arguments": call[1]}}
    chat = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "", "tool_calls": [function]},
        {"role": "tool", "name": call[0], "content": result},
    ]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    return str(text).rpartition(_body(turn_of(tokenizer, family, calls=[call]), family))[2]


def check_record(family: Family, kind: str, record: dict[str, Any]) -> None:
    """Assert that the episode of a rollout holds the calls that were meant, and no others."""
    number = 10 + int(record["task_id"].rpartition("-")[2])
    calls = [[(c["name"], c["arguments"]) for c in turn["calls"]] for turn in record["turns"]]
    errors = [code for turn in record["turns"] for code in turn["errors"]]
    repairs = [code for turn in record["turns"] for code in turn["repairs"]]
    right = [[("read", {"note": record["task_id"]})], [("answer", {"value": number})]]
    assert record["correct"] == (kind in ("right", "repaired")), kind
    assert not any(turn["action"].endswith(family.stop) for turn in record["turns"]), kind
    if kind in ("right", "repaired"):
        assert calls == right, kind
        assert not errors, kind
        assert bool(repairs) == (kind == "repaired"), kind
    if kind == "wrong":
        assert (calls, errors, repairs) == ([[("answer", {"value": 0})]], [], [])
    if kind in ("silent", "in a thought", "in an open thought"):
        assert not any(calls[:1]), kind
    if kind == "cut off":
        assert not record["answered"]
        assert errors
