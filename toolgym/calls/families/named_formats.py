"""Formats of a name, and behind it a JSON object with the arguments.

The pattern `head` of an entry matches what stands between its mark and that object, its group 1 the
name of the tool: DeepSeek's and Kimi's tokens, the header of a channel, two lines of a prompt.
"""

from __future__ import annotations

from typing import Final

from toolgym.calls.families.entry import (
    DEEPSEEK_END,
    FENCE,
    JSON,
    LLAMA_CPP,
    NAME,
    SGLANG,
    THINK,
    VLLM,
    Format,
)

_CALLS, _CALLS_END = (
    "<\uff5ctool\u2581calls\u2581begin\uff5c>",
    "<\uff5ctool\u2581calls\u2581end\uff5c>",
)
_CALL, _CALL_END = (
    "<\uff5ctool\u2581call\u2581begin\uff5c>",
    "<\uff5ctool\u2581call\u2581end\uff5c>",
)
_SEP: Final = "<\uff5ctool\u2581sep\uff5c>"
_DEEPSEEK_HEAD: Final = (
    rf"\s*+(?:function\s*+{_SEP}\s*+(?=\w))?+{NAME}\s*+(?:{_SEP})?+\s*+{FENCE}(?=\{{)"
)
_DEEPSEEK_RESULT: Final = (
    "<\uff5ctool\u2581output\u2581begin\uff5c>", "<\uff5ctool\u2581output\u2581end\uff5c>"
)  # fmt: skip

NAMED_FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="mistral-args",
        families=("Magistral", "Devstral", "Mistral Small 3.2", "Mistral Medium 3"),
        source=f"{SGLANG}mistral_detector.py; {VLLM}mistral_tool_parser.py",
        arguments=JSON,
        marks=("[TOOL_CALLS]",),
        frame=("[ARGS]", "[CALL_ID]"),
        reading=("mistral",),
        thinking=("[THINK]", "[/THINK]"),
        stop=("</s>",),
        result=("[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    ),
    Format(
        name="deepseek-v3",
        families=("DeepSeek V3", "DeepSeek R1", "DeepSeek R1 Distill"),
        source=f"{SGLANG}deepseekv3_detector.py",
        arguments=JSON,
        marks=(_CALL,),
        frame=(_CALLS, _SEP),
        closes=(_CALL_END, _CALLS_END),
        reading=("named",),
        head=_DEEPSEEK_HEAD,
        thinking=THINK,
        stop=(DEEPSEEK_END,),
        result=_DEEPSEEK_RESULT,
    ),
    Format(
        name="deepseek-v3.1",
        families=("DeepSeek V3.1", "DeepSeek V3.2 Exp"),
        source=f"{SGLANG}deepseekv31_detector.py; {LLAMA_CPP}deepseek-ai-DeepSeek-V3.1.jinja",
        arguments=JSON,
        marks=(_CALL,),
        frame=(_CALLS, _SEP),
        closes=(_CALL_END, _CALLS_END),
        reading=("named",),
        head=_DEEPSEEK_HEAD,
        thinking=THINK,
        stop=(DEEPSEEK_END,),
        result=_DEEPSEEK_RESULT,
    ),
    Format(
        name="kimi-k2",
        families=("Kimi K2", "Kimi K2 Thinking", "Kimi K2.5"),
        source=f"{SGLANG}kimik2_detector.py; {LLAMA_CPP}moonshotai-Kimi-K2.jinja",
        arguments=JSON,
        marks=("<|tool_call_begin|>",),
        frame=("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"),
        closes=("<|tool_call_end|>", "<|tool_calls_section_end|>"),
        reading=("named",),
        head=rf"\s*+(?:functions\.)?+{NAME}(?::\d++)?+\s*+<\|tool_call_argument_begin\|>\s*+(?=\{{)",
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        name="plamo-3",
        families=("PLaMo 3",),
        source=f"{VLLM}plamo3_tool_parser.py",
        arguments=JSON,
        marks=("<|plamo:begin_tool_name:plamo|>",),
        frame=(
            "<|plamo:begin_tool_requests:plamo|>",
            "<|plamo:begin_tool_request:plamo|>",
            "<|plamo:constrain|>",
            "<|plamo:msg|>",
        ),
        closes=(
            "<|plamo:end_tool_arguments:plamo|>",
            "<|plamo:end_tool_request:plamo|>",
            "<|plamo:end_tool_requests:plamo|>",
        ),
        reading=("named",),
        head=rf"\s*+{NAME}<\|plamo:end_tool_name:plamo\|>\s*+<\|plamo:begin_tool_arguments:plamo\|>"
        r"(?:<\|plamo:constrain\|>json)?+<\|plamo:msg\|>\s*+(?=\{)",
        thinking=("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        stop=("<|plamo:tag|>",),
    ),
    Format(
        name="mcp",
        families=("MiroThinker",),
        source=f"{LLAMA_CPP}MiroThinker-v1.jinja",
        arguments=JSON,
        marks=("<use_mcp_tool>",),
        frame=("<server_name>", "</server_name>", "<tool_name>", "</tool_name>", "<arguments>"),
        closes=("</arguments>", "</use_mcp_tool>"),
        reading=("named",),
        head=rf"\s*+(?:<server_name>[^<>]*+</server_name>\s*+)?+<tool_name>\s*+{NAME}\s*+</tool_name>"
        r"\s*+<arguments>\s*+(?=\{)",
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        name="step-audio",
        families=("Step Audio 2",),
        source=f"{VLLM}step_audio_2_tool_parser.py",
        arguments=JSON,
        marks=("<tool_call>",),
        reading=("hermes",),
        thinking=THINK,
    ),
    Format(
        name="harmony",
        families=("gpt-oss",),
        source=f"{SGLANG}gpt_oss_detector.py; openai/harmony docs/format.md",
        arguments=JSON,
        marks=("<|channel|>",),
        frame=("<|start|>", "<|constrain|>", "<|message|>", "<|end|>"),
        closes=("<|call|>",),
        certain=False,
        reading=("channel",),
        head=r"\w*+\s*+(?:to=(?:functions\.)?+([\w.\-/]++))?+\s*+(?:<\|constrain\|>)?+\s*+\w*+\s*+"
        r"<\|message\|>\s*+(?=\{)",
        thinking=("<|channel|>analysis<|message|>", "<|end|>"),
        stop=("<|call|>", "<|return|>", "<|end|>"),
    ),
    Format(
        name="functionary-v2",
        families=("Functionary 2",),
        source="MeetKai/functionary prompt_template/jinja_templates/v2.txt",
        arguments=JSON,
        marks=("<|recipient|>",),
        frame=("<|from|>", "<|content|>"),
        certain=False,
        reading=("named",),
        head=rf"\s*+{NAME}[ \t]*+\n<\|content\|>\s*+(?=\{{)",
        stop=("<|stop|>",),
    ),
    Format(
        name="functionary-v3.2",
        families=("Functionary 3.2",),
        source="MeetKai/functionary prompt_template/jinja_templates/v3.llama3.txt",
        arguments=JSON,
        reading=("line",),
        stop=("<|eot_id|>",),
    ),
    Format(
        name="functionary-v2.5",
        families=("Functionary 2.5",),
        source="MeetKai/functionary prompt_template/jinja_templates/v2.llama3.txt",
        arguments=JSON,
        marks=("<|reserved_special_token_249|>",),
        reading=("named",),
        head=rf"\s*+{NAME}[ \t]*+\n\s*+(?=\{{)",
        stop=("<|eot_id|>",),
    ),
    Format(
        name="glm-4",
        families=("GLM-4-0414", "GLM-4 9B", "GLM-Z1"),
        source="THUDM/GLM-4-0414 chat template",
        arguments=JSON,
        marks=("<|assistant|>",),
        certain=False,
        reading=("named",),
        head=rf"\s*+{NAME}[ \t]*+\n\s*+(?=\{{)",
        thinking=THINK,
        stop=("<|observation|>", "<|user|>"),
    ),
    Format(
        name="qwen-agent",
        families=("Qwen 1.5", "Qwen 2", "Qwen-Agent"),
        source="QwenLM/Qwen-Agent qwen_agent/llm/fncall_prompts/qwen_fncall_prompt.py",
        arguments=JSON,
        marks=("\u273fFUNCTION\u273f",),
        frame=("\u273fARGS\u273f", "\u273fRETURN\u273f"),
        reading=("named",),
        head=rf"\s*+:?+\s*+{NAME}\s*+\u273fARGS\u273f\s*+:?+\s*+{FENCE}(?=\{{)",
        stop=("\u273fRESULT\u273f", "<|im_end|>"),
        result=("\u273fRESULT\u273f", ""),
    ),
    Format(
        name="react",
        families=("ReAct prompts", "LangChain agents"),
        source="Yao et al. 2023, ReAct; langchain agents/output_parsers/react_single_input.py",
        arguments=JSON,
        reading=("line",),
        stop=("Observation:",),
    ),
)  # fmt: skip
