"""The table of call formats: the syntax of calls, reasoning and end-of-turn tokens of each model
family.

`toolgym.calls.find` reads calls according to this table, which the documentation, the tests and
`toolgym.sanitize` also use. To support a new model family, add an entry to the table and a test
fixture. Each entry names its sources, which are chat templates of the family or parsers of
inference engines.

This module imports only the standard library, because `toolgym.sanitize` imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Final

JSON, PYTHON, TAGS, BRACES = "JSON", "Python", "tags", "braces"
HERMES = "hermes"
THINK: Final = ("<think>", "</think>")


@dataclass(frozen=True)
class Format:
    """A call format of one or more model families.

    Attributes:
        name: Name of the format, as returned by `formats_in`.
        models: The model families that use the format, separated by commas.
        source: Files of public repositories that document the format.
        arguments: Notation of the arguments: `JSON`, `Python`, `tags` or `braces`.
        marks: Strings that open a call or a list of calls.
        closes: Strings that close a call or a list of calls; the first string closes a single call.
        frame: Other control strings around calls or inside them.
        certain: Whether a string in `marks` without a call after it is an error; False if the
            string also has other uses.
        head: Pattern of the text between the opening string and the arguments; group 1 is the
            tool's name.
        lead: Pattern that begins a line with a call, in formats without marks.
        keys: Keys of the name and the arguments in a JSON object.
        keyed: Whether the JSON object has the tool's name as its only key.
        parameter: The string that opens a parameter, in formats with tags.
        key: Pattern of the text between `parameter` and the value; group 1 is the parameter's name.
            If `key` is empty, `head` is used instead.
        close: The string that closes the value of a parameter.
        quotes: Strings around a value, in formats with tags or braces.
        thinking: Strings that open and close thinking.
        result: Strings that open and close the result of a tool.
        stop: Tokens that end a turn.
    """

    name: str
    models: str
    source: str
    _: KW_ONLY
    arguments: str = JSON
    marks: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    frame: tuple[str, ...] = ()
    certain: bool = True
    head: str = ""
    lead: str = ""
    keys: tuple[str, str] = ("name", "arguments")
    keyed: bool = False
    parameter: str = ""
    key: str = ""
    close: str = ""
    quotes: tuple[str, str] = ("", "")
    thinking: tuple[str, str] | None = None
    result: tuple[str, str] | None = None
    stop: tuple[str, ...] = ()

    @property
    def families(self) -> list[str]:
        """The names of the model families, as a list."""
        return self.models.split(", ")


# Patterns are possessive (`*+`), so they never backtrack, and matching time grows linearly with the
# length of the text.
NAME: Final = r"([\w.\-/]++)"
NAME_LINE: Final = rf"\s*+{NAME}[ \t]*+\n\s*+(?=\{{)"
BARE_NAME: Final = r"\s*+([\w.\-/:]++)\s*+(?:<tool_sep[^<>]*+>\s*+)?+(?=<|\Z)"
FENCE: Final = r"(?:```\w*+\s*+)?+"
QUOTED: Final = r"\s*+[\"']?+\s*+([^<>\s\"']++)\s*+[\"']?+"
OTHERS: Final = r"(?:\s++\w++\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>/]++))*+"
EQUALS: Final = rf"{QUOTED}\s*+>"
ATTRIBUTE: Final = rf"\s*+name\s*+=\s*+{QUOTED}{OTHERS}\s*+>"
SUFFIX: Final = r"(?::\w{1,16})?+"
"""Pattern of the suffix that Hunyuan 3 adds to its tags: `<tool_call:6124c78e>`."""
DEEPSEEK_END: Final = ("<\uff5cend\u2581of\u2581sentence\uff5c>",)


def _pair(space: str) -> str:
    """Return the pattern from the tag of a key to its value, which has its own tag (GLM)."""
    space = re.escape(space)
    return (
        rf"{SUFFIX}>\s*+([^<>\s]++)\s*+</{space}arg_key{SUFFIX}>\s*+"
        rf"(?:<{space}arg_type>[^<>]*+</{space}arg_type>\s*+)?+<{space}arg_value{SUFFIX}>"
    )


def _deepseek(name: str, models: str, source: str) -> Format:
    """Return a format with DeepSeek's tokens around a name and a JSON object."""
    separator = "<\uff5ctool\u2581sep\uff5c>"
    return Format(
        name,
        models,
        source,
        marks=("<\uff5ctool\u2581call\u2581begin\uff5c>",),
        closes=("<\uff5ctool\u2581call\u2581end\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"),
        head=rf"\s*+(?:function\s*+{separator}\s*+(?=\w))?+{NAME}\s*+(?:{separator})?+\s*+{FENCE}"
        r"(?=\{)",
        thinking=THINK,
        result=(
            "<\uff5ctool\u2581output\u2581begin\uff5c>",
            "<\uff5ctool\u2581output\u2581end\uff5c>",
        ),
        stop=DEEPSEEK_END,
    )


def _invoke(
    name: str,
    models: str,
    source: str,
    space: str,
    closes: tuple[str, ...],
    *,
    thinking: tuple[str, str] | None = THINK,
    result: tuple[str, str] | None = None,
    stop: tuple[str, ...] = (),
) -> Format:
    """Return a format with tags as in `<invoke name="f"><parameter name="x">value</parameter>`.

    Args:
        name: As in `Format`.
        models: As in `Format`.
        source: As in `Format`.
        space: Prefix of the names of the tags.
        closes: Strings that close a section of calls. `<x>` opens the section that `</x>` closes.
        thinking: As in `Format`.
        result: As in `Format`.
        stop: As in `Format`.
    """
    return Format(
        name,
        models,
        source,
        arguments=TAGS,
        marks=(f"<{space}invoke ",),
        closes=(f"</{space}invoke>", *closes),
        frame=tuple(text.replace("</", "<") for text in closes),
        head=ATTRIBUTE,
        parameter=f"<{space}parameter ",
        close=f"</{space}parameter>",
        thinking=thinking,
        result=result,
        stop=stop,
    )


FORMATS: Final = (
    # JSON objects with a name and arguments, alone or in a list.
    Format(
        "hermes",
        "Qwen 2.5, Qwen 3, QwQ, Hermes 2 Pro, Hermes 3, Hermes 4, Granite 4, SmolLM3, Falcon H1, "
        "EXAONE 4, Trinity, Ling 2, ERNIE 4.5, Youtu",
        "SGLang hermes_detector.py, qwen25_detector.py",
        marks=("<tool_call>",),
        closes=("</tool_call>",),
        head=rf"\s*+{NAME}\s*+(?=\{{)",
        thinking=THINK,
        result=("<tool_response>", "</tool_response>"),
        stop=("<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "[|endofturn|]"),
    ),
    Format(
        "granite-3.1",
        "Granite 3.1",
        "vLLM granite_tool_parser.py",
        marks=("<tool_call>",),
        closes=("</tool_call>",),
        stop=("<|end_of_text|>",),
    ),
    Format(
        "functionary-v3.1",
        "Functionary 3.1, Llama 3.1 with tools in the prompt",
        "MeetKai/functionary prompt_template/jinja_templates/v3-llama3.1.txt",
        marks=("<function=",),
        closes=("</function>",),
        head=rf"{QUOTED}\s*+>\s*+(?=\{{)",
        stop=("<|eom_id|>", "<|eot_id|>"),
    ),
    Format(
        "mistral",
        "Mistral 7B v0.3, Mistral Nemo, Mixtral 8x22B, Mistral Small 3",
        "SGLang mistral_detector.py",
        marks=("[TOOL_CALLS]",),
        result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        stop=("</s>",),
    ),
    Format(
        "llama",
        "Llama 3.1, Llama 3.2, Llama 3.3",
        "SGLang llama32_detector.py",
        marks=("<|python_tag|>",),
        certain=False,
        keys=("name", "parameters"),
        stop=("<|eom_id|>", "<|eot_id|>"),
    ),
    Format(
        "json",
        "Llama 3.1 without `<|python_tag|>`, Llama 4 (JSON), xLAM, Gemma 3 (JSON), RWKV 7",
        "vLLM llama_tool_parser.py, xlam_tool_parser.py",
        keys=("name", "parameters"),
        stop=("<|eot_id|>", "<|im_end|>", "<end_of_turn>"),
    ),
    Format(
        "tool-calls",
        "Jamba, Hunyuan A13B, Apriel 1.5, Apriel 1.6",
        "vLLM jamba_tool_parser.py, hunyuan_a13b_tool_parser.py",
        marks=("<tool_calls>",),
        closes=("</tool_calls>",),
        thinking=THINK,
        stop=("<|eom|>", "<|endoftext|>", "<|eos|>", "<|end|>"),
    ),
    Format(
        "minimax-m1",
        "MiniMax M1, MiniMax Text 01",
        "vLLM minimax_tool_parser.py; vLLM examples/tool_chat_template_minimax_m1.jinja",
        marks=("<tool_calls>",),
        closes=("</tool_calls>",),
        thinking=THINK,
        stop=("<end_of_sentence>",),
    ),
    Format(
        "nemotron",
        "Nemotron Nano 2, Llama Nemotron Super, Llama Nemotron Nano",
        "llama.cpp NVIDIA-Nemotron-Nano-v2.jinja; "
        "vLLM examples/tool_chat_template_nemotron_json.jinja",
        marks=("<TOOLCALL>",),
        closes=("</TOOLCALL>",),
        thinking=THINK,
        result=("<TOOL_RESPONSE>", "</TOOL_RESPONSE>"),
        stop=("<SPECIAL_12>", "<|eot_id|>"),
    ),
    Format(
        "granite-3",
        "Granite 3.0, Granite 3.2, Granite 3.3",
        "vLLM granite_tool_parser.py",
        marks=("<|tool_call|>",),
        thinking=THINK,
        stop=("<|end_of_text|>",),
    ),
    Format(
        "phi-4-mini",
        "Phi-4-mini",
        "llama.cpp llama-cpp-microsoft-Phi-4-mini-instruct.jinja",
        marks=("<|tool_call|>",),
        closes=("<|/tool_call|>",),
        result=("<|tool_response|>", "<|end|>"),
        stop=("<|end|>",),
    ),
    Format(
        "functools",
        "Phi-4-mini as it is prompted, FireFunction 2",
        "vLLM phi4mini_tool_parser.py",
        lead=r"functools(?=\[)",
        stop=("<|end|>",),
    ),
    Format(
        "granite-20b",
        "Granite 20B function calling",
        "vLLM granite_20b_fc_tool_parser.py",
        marks=("<function_call>",),
        closes=("</function_call>",),
        result=("<function_response>", "</function_response>"),
        stop=("<|endoftext|>",),
    ),
    Format(
        "longcat",
        "LongCat",
        "vLLM longcat_tool_parser.py",
        marks=("<longcat_tool_call>",),
        closes=("</longcat_tool_call>",),
        thinking=("<longcat_think>", "</longcat_think>"),
        stop=("</longcat_s>",),
    ),
    Format(
        "internlm",
        "InternLM 2, InternLM 2.5, Intern-S1",
        "SGLang internlm_detector.py; vLLM internlm2_tool_parser.py",
        marks=("<|plugin|>",),
        closes=("<|action_end|>",),
        keys=("name", "parameters"),
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        "command-a",
        "Command R7B, Command A, Command A Reasoning, Command 4",
        "SGLang cohere_command4_detector.py; "
        "llama.cpp CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja",
        marks=("<|START_ACTION|>",),
        closes=("<|END_ACTION|>",),
        keys=("tool_name", "parameters"),
        thinking=("<|START_THINKING|>", "<|END_THINKING|>"),
        result=("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"),
        stop=("<|END_OF_TURN_TOKEN|>",),
    ),
    Format(
        "command-r",
        "Command R, Command R+",
        "vLLM examples/command_r_tool_chat_template.jinja",
        keys=("tool_name", "parameters"),
        lead=rf"Action:\s*+{FENCE}(?=[\[{{])",
        stop=("<|END_OF_TURN_TOKEN|>",),
    ),
    Format(
        "apertus",
        "Apertus",
        "SGLang apertus2509_detector.py; vLLM examples/tool_chat_template_apertus.jinja",
        marks=("<|tools_prefix|>",),
        closes=("<|tools_suffix|>",),
        keyed=True,
        thinking=("<|inner_prefix|>", "<|inner_suffix|>"),
        stop=("<|assistant_end|>",),
    ),
    Format(
        "inkling",
        "Inkling",
        "SGLang inkling_detector.py",
        marks=("<|content_invoke_tool_json|>",),
        closes=("<|end_message|>",),
        keys=("name", "args"),
    ),
    Format(
        "gigachat-3",
        "GigaChat 3",
        "SGLang gigachat3_detector.py; llama.cpp GigaChat3-10B-A1.8B.jinja",
        marks=("<|role_sep|>", "<|function_call|>"),
        certain=False,
        stop=("<|message_sep|>", "</s>"),
    ),
    Format(
        "pangu",
        "openPangu Embedded",
        "vLLM pangu_tool_parser.py",
        marks=("[unused11]",),
        closes=("[unused12]",),
        thinking=("[unused16]", "[unused17]"),
        stop=("[unused10]",),
    ),
    Format(
        "hyperclova",
        "HyperCLOVA X Seed Think",
        "vLLM hyperclovax_seed_think_tool_parser.py",
        lead=r"-> tool/function_call\s*+",
        stop=("<|im_end|>", "<|endofturn|>", "<|stop|>"),
    ),
    # A name, followed by a JSON object with the arguments.
    Format(
        "mistral-args",
        "Magistral, Devstral, Mistral Small 3.2, Mistral Medium 3",
        "SGLang mistral_detector.py; vLLM mistral_tool_parser.py",
        marks=("[TOOL_CALLS]",),
        head=rf"\s*+{NAME}(?:\[CALL_ID\][\w-]*+)?+(?:\[ARGS\])?+\s*+(?=\{{)",
        thinking=("[THINK]", "[/THINK]"),
        result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
        stop=("</s>",),
    ),
    _deepseek(
        "deepseek-v3",
        "DeepSeek V3, DeepSeek R1, DeepSeek R1 Distill",
        "SGLang deepseekv3_detector.py",
    ),
    _deepseek(
        "deepseek-v3.1",
        "DeepSeek V3.1, DeepSeek V3.2 Exp",
        "SGLang deepseekv31_detector.py; llama.cpp deepseek-ai-DeepSeek-V3.1.jinja",
    ),
    Format(
        "kimi-k2",
        "Kimi K2, Kimi K2 Thinking, Kimi K2.5",
        "SGLang kimik2_detector.py; llama.cpp moonshotai-Kimi-K2.jinja",
        marks=("<|tool_call_begin|>",),
        closes=("<|tool_call_end|>", "<|tool_calls_section_end|>"),
        head=rf"\s*+(?:functions\.)?+{NAME}(?::\d++)?+\s*+<\|tool_call_argument_begin\|>\s*+(?=\{{)",
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        "plamo-3",
        "PLaMo 3",
        "vLLM plamo3_tool_parser.py",
        marks=("<|plamo:begin_tool_name:plamo|>",),
        closes=(
            "<|plamo:end_tool_arguments:plamo|>",
            "<|plamo:end_tool_request:plamo|>",
            "<|plamo:end_tool_requests:plamo|>",
        ),
        head=rf"\s*+{NAME}<\|plamo:end_tool_name:plamo\|>\s*+<\|plamo:begin_tool_arguments:plamo\|>"
        r"(?:<\|plamo:constrain\|>json)?+<\|plamo:msg\|>\s*+(?=\{)",
        thinking=("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        stop=("<|plamo:tag|>",),
    ),
    Format(
        "mcp",
        "MiroThinker",
        "llama.cpp MiroThinker-v1.jinja",
        marks=("<use_mcp_tool>",),
        closes=("</arguments>", "</use_mcp_tool>"),
        frame=("<server_name>", "</server_name>", "<tool_name>", "</tool_name>", "<arguments>"),
        head=rf"\s*+(?:<server_name>[^<>]*+</server_name>\s*+)?+<tool_name>\s*+{NAME}\s*+</tool_name>"
        r"\s*+<arguments>\s*+(?=\{)",
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        "step-audio",
        "Step Audio 2",
        "vLLM step_audio_2_tool_parser.py",
        marks=("<tool_call>",),
        closes=("</tool_call>",),
        head=rf"function\n{NAME}\s*+(?=\{{)",
        thinking=THINK,
    ),
    Format(
        "harmony",
        "gpt-oss",
        "SGLang gpt_oss_detector.py; openai/harmony docs/format.md",
        marks=("<|channel|>",),
        closes=("<|call|>",),
        certain=False,
        head=r"\w*+\s*+(?:to=(?:functions\.)?+([\w.\-/]++))?+\s*+(?:<\|constrain\|>)?+\s*+\w*+\s*+"
        r"<\|message\|>\s*+(?=\{)",
        thinking=("<|channel|>analysis<|message|>", "<|end|>"),
        stop=("<|call|>", "<|return|>", "<|end|>"),
    ),
    Format(
        "functionary-v2",
        "Functionary 2",
        "MeetKai/functionary prompt_template/jinja_templates/v2.txt",
        marks=("<|recipient|>",),
        certain=False,
        head=rf"\s*+{NAME}[ \t]*+\n<\|content\|>\s*+(?=\{{)",
        stop=("<|stop|>",),
    ),
    Format(
        "functionary-v3.2",
        "Functionary 3.2",
        "MeetKai/functionary prompt_template/jinja_templates/v3.llama3.txt",
        certain=False,
        head=NAME_LINE,
        stop=("<|eot_id|>",),
    ),
    Format(
        "functionary-v2.5",
        "Functionary 2.5",
        "MeetKai/functionary prompt_template/jinja_templates/v2.llama3.txt",
        marks=("<|reserved_special_token_249|>",),
        head=NAME_LINE,
        stop=("<|eot_id|>",),
    ),
    Format(
        "glm-4",
        "GLM-4-0414, GLM-4 9B, GLM-Z1",
        "THUDM/GLM-4-0414 chat template",
        marks=("<|assistant|>",),
        certain=False,
        head=NAME_LINE,
        thinking=THINK,
        stop=("<|observation|>", "<|user|>"),
    ),
    Format(
        "qwen-agent",
        "Qwen 1.5, Qwen 2, Qwen-Agent",
        "QwenLM/Qwen-Agent qwen_agent/llm/fncall_prompts/qwen_fncall_prompt.py",
        marks=("\u273fFUNCTION\u273f",),
        frame=("\u273fARGS\u273f", "\u273fRETURN\u273f"),
        head=rf"\s*+:?+\s*+{NAME}\s*+\u273fARGS\u273f\s*+:?+\s*+{FENCE}(?=\{{)",
        result=("\u273fRESULT\u273f", ""),
        stop=("\u273fRESULT\u273f", "<|im_end|>"),
    ),
    Format(
        "react",
        "ReAct prompts, LangChain agents",
        "Yao et al. 2023, ReAct; langchain agents/output_parsers/react_single_input.py",
        lead=rf"Action:[ \t]*+{NAME}[ \t]*+\n\s*+Action Input:\s*+{FENCE}",
        stop=("Observation:",),
    ),
    # Python calls with literal arguments.
    Format(
        "python",
        "Llama 3.2 1B and 3B, ToolACE, Gemma 3, Granite 3.3 without tokens",
        "SGLang pythonic_detector.py; vLLM pythonic_tool_parser.py",
        arguments=PYTHON,
        stop=("<|eot_id|>", "<end_of_turn>"),
    ),
    Format(
        "tool-code",
        "Gemma 3 (tool_code prompt)",
        "Google's guide to function calling with Gemma 3",
        arguments=PYTHON,
        stop=("<end_of_turn>",),
    ),
    Format(
        "llama-4",
        "Llama 4 Scout, Llama 4 Maverick",
        "vLLM llama4_pythonic_tool_parser.py",
        arguments=PYTHON,
        marks=("<|python_start|>",),
        closes=("<|python_end|>",),
        stop=("<|eot|>", "<|eom|>"),
    ),
    Format(
        "lfm2",
        "LFM2, LFM2.5",
        "SGLang lfm2_detector.py; llama.cpp LFM2.5-8B-A1B.jinja",
        arguments=PYTHON,
        marks=("<|tool_call_start|>",),
        closes=("<|tool_call_end|>",),
        thinking=THINK,
        result=("<|tool_response_start|>", "<|tool_response_end|>"),
        stop=("<|im_end|>",),
    ),
    Format(
        "minicpm-3",
        "MiniCPM 3",
        "vLLM minicpm_tool_parser.py; vLLM examples/tool_chat_template_minicpm3.jinja",
        arguments=PYTHON,
        marks=("<|tool_call_start|>",),
        closes=("<|tool_call_end|>",),
        thinking=("<|thought_start|>", "<|thought_end|>"),
        stop=("<|im_end|>",),
    ),
    Format(
        "olmo-3",
        "OLMo 3",
        "vLLM olmo3_tool_parser.py",
        arguments=PYTHON,
        marks=("<function_calls>",),
        closes=("</function_calls>",),
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        "gorilla",
        "Gorilla OpenFunctions 2",
        "ShishirPatil/gorilla openfunctions",
        arguments=PYTHON,
        marks=("<<function>>",),
        stop=("<|EOT|>",),
    ),
    Format(
        "nexus-raven",
        "NexusRaven 2",
        "nexusflowai/NexusRaven-V2 README",
        arguments=PYTHON,
        lead=r"Call:[ \t]*+",
        stop=("<bot_end>",),
    ),
    # Plain text in tags, and Gemma's braces.
    Format(
        "qwen3-coder",
        "Qwen 3 Coder, Qwen 3.5, Nemotron 3, Step 3.5, MiMo, Nanbeige",
        "SGLang qwen3_coder_detector.py, mimo_detector.py",
        arguments=TAGS,
        marks=("<function=",),
        closes=("</function>", "</tool_call>", "</seed:tool_call>"),
        frame=("<tool_call>",),
        head=EQUALS,
        parameter="<parameter=",
        close="</parameter>",
        thinking=THINK,
        result=("<tool_response>", "</tool_response>"),
        stop=("<|im_end|>",),
    ),
    Format(
        "seed-oss",
        "Seed-OSS",
        "vLLM seed_oss_tool_parser.py; llama.cpp ByteDance-Seed-OSS.jinja",
        arguments=TAGS,
        marks=("<function=",),
        closes=("</function>", "</tool_call>", "</seed:tool_call>"),
        frame=("<seed:tool_call>",),
        head=EQUALS,
        parameter="<parameter=",
        close="</parameter>",
        thinking=("<seed:think>", "</seed:think>"),
        stop=("<seed:eos>",),
    ),
    Format(
        "glm",
        "GLM 4.5, GLM 4.6, GLM 4.7, GLM 5, Ling 3, Laguna, Spark 2.5",
        "SGLang glm4_moe_detector.py, glm47_moe_detector.py, ling3_detector.py",
        arguments=TAGS,
        marks=("<tool_call>",),
        closes=("</tool_call>",),
        frame=("</arg_key>", "<arg_value>"),
        head=BARE_NAME,
        key=_pair(""),
        parameter="<arg_key",
        close="</arg_value>",
        thinking=THINK,
        result=("<tool_response>", "</tool_response>"),
        stop=("<|user|>", "<|observation|>", "<|endoftext|>"),
    ),
    Format(
        "hunyuan-3",
        "Hunyuan 3",
        "SGLang hunyuan_detector.py; vLLM hy_v3_tool_parser.py",
        arguments=TAGS,
        marks=("<tool_call>",),
        closes=("</tool_call>",),
        frame=("<tool_sep>", "<arg_value>"),
        head=BARE_NAME,
        key=_pair(""),
        parameter="<arg_key",
        close="</arg_value>",
        thinking=THINK,
    ),
    Format(
        "iquest",
        "IQuest Q1",
        "SGLang iquest_q1_detector.py",
        arguments=TAGS,
        marks=("<iquest_tool_call>",),
        closes=("</iquest_tool_call>",),
        frame=("<arg_value>",),
        head=BARE_NAME,
        key=_pair(""),
        parameter="<arg_key",
        close="</arg_value>",
        thinking=THINK,
    ),
    Format(
        "k2-horizon",
        "K2 Horizon",
        "SGLang k2_v3_detector.py",
        arguments=TAGS,
        marks=("<ifm|tool_call>",),
        closes=("</ifm|tool_call>", "</ifm|tool_calls>"),
        frame=(
            "<ifm|tool_calls>",
            "</ifm|arg_key>",
            "<ifm|arg_type>",
            "</ifm|arg_type>",
            "<ifm|arg_value>",
        ),
        head=BARE_NAME,
        key=_pair("ifm|"),
        parameter="<ifm|arg_key",
        close="</ifm|arg_value>",
        thinking=("<ifm|think>", "</ifm|think>"),
    ),
    Format(
        "longcat-tags",
        "LongCat 2",
        "traces of LongCat-Flash-Lite",
        arguments=TAGS,
        marks=("<longcat_tool_call>",),
        closes=("</longcat_tool_call>",),
        frame=("</longcat_arg_key>", "<longcat_arg_value>"),
        head=BARE_NAME,
        key=_pair("longcat_"),
        parameter="<longcat_arg_key",
        close="</longcat_arg_value>",
        thinking=("<longcat_think>", "</longcat_think>"),
        stop=("</longcat_s>",),
    ),
    Format(
        "solar",
        "Solar Open 2",
        "vLLM solar_open2_tool_parser.py",
        arguments=TAGS,
        marks=("<|tool_call:start|>",),
        closes=("<|tool_call:end|>",),
        frame=("<|tool_arg:value|>",),
        head=BARE_NAME,
        key=r"\s*+([^<>\s]++)\s*+<\|tool_arg:value\|>",
        parameter="<|tool_arg:start|>",
        close="<|tool_arg:end|>",
    ),
    _invoke(
        "minimax-m2",
        "MiniMax M2, MiniMax M2.1, MiniMax M2.5",
        "SGLang minimax_m2.py; llama.cpp unsloth-MiniMax-M2.jinja",
        "",
        (
            "</minimax:tool_call>",
            "</function_calls>",
            "</dots_function_call>",
        ),
        stop=("[e~[",),
    ),
    Format(
        "dots",
        "dots",
        "SGLang dots_detector.py; vLLM dots_tool_parser.py",
        arguments=TAGS,
        marks=("<dots_function_call>", "<invoke "),
        closes=("</dots_function_call>",),
        thinking=THINK,
    ),
    Format(
        "minimax-m3",
        "MiniMax M3",
        "SGLang minimax_m3.py",
        arguments=TAGS,
        marks=("]<]minimax[>[<invoke ",),
        closes=("]<]minimax[>[</invoke>", "]<]minimax[>[</tool_call>"),
        frame=("]<]minimax[>[", "]<]minimax[>[<tool_call>"),
        head=ATTRIBUTE,
        key=r"([\w.\-]++)>",
        parameter="]<]minimax[>[<",
        close="]<]minimax[>[</",
        thinking=("<mm:think>", "</mm:think>"),
        stop=("[e~[",),
    ),
    _invoke(
        "deepseek-v3.2",
        "DeepSeek V3.2",
        "SGLang deepseekv32_detector.py; llama.cpp DeepSeek-V3.2.jinja",
        "\uff5cDSML\uff5c",
        (
            "</\uff5cDSML\uff5cfunction_calls>",
            "</\uff5cDSML\uff5ctool_calls>",
        ),
        result=("<function_results>", "</function_results>"),
        stop=DEEPSEEK_END,
    ),
    _invoke(
        "deepseek-v4",
        "DeepSeek V4",
        "SGLang deepseekv4_detector.py",
        "\uff5cDSML\uff5c",
        (
            "</\uff5cDSML\uff5cfunction_calls>",
            "</\uff5cDSML\uff5ctool_calls>",
        ),
        result=("<tool_result>", "</tool_result>"),
        stop=DEEPSEEK_END,
    ),
    _invoke(
        "deepseek-v4.1",
        "DeepSeek V4.1",
        "SGLang deepseekv41_detector.py",
        "\uff5cDSML\uff5c ",
        ("</\uff5cDSML\uff5c calls>",),
        result=("<tool_result>", "</tool_result>"),
        stop=DEEPSEEK_END,
    ),
    _invoke(
        "gigachat-3.5",
        "GigaChat 3.5",
        "SGLang gigachat35_detector.py; llama.cpp GigaChat3.5.jinja",
        "\uff5cGCML\uff5c",
        ("</\uff5cGCML\uff5ctool_calls>",),
        result=("<function_response", "</function_response>"),
        stop=("<|message_sep|>", "</s>"),
    ),
    _invoke(
        "step-3",
        "Step 3",
        "SGLang step3_detector.py; vLLM step3_tool_parser.py",
        "steptml:",
        (
            "<\uff5ctool_call_end\uff5c>",
            "<\uff5ctool_calls_end\uff5c>",
        ),
        stop=("<\uff5cend\u2581of\u2581sentence\uff5c>", "<|EOT|>"),
    ),
    _invoke(
        "muse",
        "Muse Glimmer",
        "SGLang muse_glimmer_detector.py",
        "atem:",
        ("</atem:function_calls>",),
        thinking=None,
        stop=("<|eot|>", "<|eom|>"),
    ),
    Format(
        "minicpm-5",
        "MiniCPM 5",
        "SGLang minicpm5_detector.py; vLLM minicpm5xml_tool_parser.py",
        arguments=TAGS,
        marks=("<function ",),
        closes=("</function>",),
        head=ATTRIBUTE,
        parameter="<param ",
        close="</param>",
        quotes=("<![CDATA[", "]]>"),
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        "kimi-k3",
        "Kimi K3",
        "SGLang kimik3_detector.py; llama.cpp Kimi-K3.jinja",
        arguments=TAGS,
        marks=("<|open|>call ",),
        closes=("<|close|>call<|sep|>", "<|close|>tools<|sep|>", "<|close|>message<|sep|>"),
        head=rf"tool\s*+=\s*+{QUOTED}{OTHERS}\s*+<\|sep\|>",
        key=rf"key\s*+=\s*+{QUOTED}{OTHERS}\s*+<\|sep\|>",
        parameter="<|open|>argument ",
        close="<|close|>argument<|sep|>",
        thinking=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        stop=("<|end_of_msg|>",),
    ),
    Format(
        "gemma-4",
        "Gemma 4",
        "SGLang gemma4_detector.py; llama.cpp gemma4.jinja",
        arguments=BRACES,
        marks=("<|tool_call>",),
        closes=("<tool_call|>",),
        quotes=('<|"|>', '<|"|>'),
        thinking=("<|channel>thought", "<channel|>"),
        result=("<|tool_response>", "<tool_response|>"),
        stop=("<|tool_response>", "<turn|>"),
    ),
    Format(
        "functiongemma",
        "FunctionGemma",
        "vLLM functiongemma_tool_parser.py",
        arguments=BRACES,
        marks=("<start_function_call>",),
        closes=("<end_function_call>",),
        frame=("<escape>",),
        quotes=("<escape>", "<escape>"),
        result=("<start_function_response>", "<end_function_response>"),
        stop=("<start_function_response>", "<end_of_turn>"),
    ),
)
"""All call formats. If formats share a mark, a call is attributed to the first one that can read
it."""

_THOUGHTS: Final = (
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<ifm|think_fast>", "</ifm|think_fast>"),
    ("<ifm|think_faster>", "</ifm|think_faster>"),
)
"""Thinking tags in addition to those of `FORMATS`."""
_ENDS_MESSAGE: Final = {"<|end|>", "<|end_message|>"}
"""Tokens that end every message. They close a thought only if it was opened in the same text."""
_BEFORE_ROLE: Final = (
    *("<|im_start|>", "<|start_header_id|>", "<|header_start|>", "<|start_of_role|>", "<|start|>"),
    *("<start_of_turn>", "<|turn>", "<seed:bos>", "]~b]"),
)
_ROLES: Final = ("user", "tool", "system", "developer", "ipython", "environment", "functions.")
_TURNS: Final = (
    *(before + role for before in _BEFORE_ROLE for role in _ROLES),
    *("<|user|>", "<|system|>", "<|observation|>", "<|im_user|>", "<|im_system|>", "[INST]"),
    *("<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>", "<\uff5cUser\uff5c>", "[SYSTEM_PROMPT]"),
)
"""Strings that open a turn of another role. The text after them does not come from the model."""

THOUGHT: Final = "thought"
_KINDS: Final = [
    (opens, closes, closes if closes in _ENDS_MESSAGE else THOUGHT)
    for opens, closes in (*_THOUGHTS, *(each.thinking for each in FORMATS if each.thinking))
]
_RESULTS: Final = dict(each.result for each in FORMATS if each.result)
HIDES: Final = {
    **dict.fromkeys(_TURNS, ""),
    **_RESULTS,
    **{opens: kind for opens, _, kind in _KINDS},
}
"""Strings that hide the text after them, each with the kind of string that ends the hidden text, or
""."""
SHOWS: Final = {
    **{closes: closes for closes in _RESULTS.values() if closes},
    **{closes: kind for _, closes, kind in _KINDS},
}
"""Strings that end hidden text, each with its kind. A string that closes a thought also closes a
thought that the prompt opened."""

CONTROL_TEXTS: Final = [
    text
    for each in FORMATS
    for text in (*each.marks, *each.frame, *each.closes, *each.stop, each.parameter, each.close)
    if text and not text[0].isalpha()
] + [*HIDES, *SHOWS]
"""Every control string of a format: marks, frames, ends of turns, thinking."""


def opened_thought(prompt: str) -> str:
    """Return the opening tag of thinking at the end of a prompt, or "" if there is none."""
    end = prompt.rstrip()[-64:]
    return next((opens for opens, _, _ in _KINDS if end.endswith(opens)), "")


def alternatives(texts: Iterable[str]) -> list[str]:
    """Return patterns that match the longest of some strings, one pattern for each first character.

    A pattern contains the common prefix of several strings only once, so a search reads each
    character once rather than once for each of a hundred strings.
    """
    by_first: dict[str, list[str]] = {}
    for text in texts:
        if text:
            by_first.setdefault(text[0], []).append(text[1:])
    return [re.escape(first) + _one_of(rests) for first, rests in by_first.items()]


def _one_of(texts: list[str]) -> str:
    rest = alternatives(texts)
    if not rest:
        return ""
    if len(rest) == 1 and "" not in texts:
        return rest[0]
    return f"(?:{'|'.join(rest)}){'?+' if '' in texts else ''}"
