"""Formats of Python calls with literal arguments: `[describe(table_name="singer")]`.

Nothing is evaluated: the text is parsed, and its arguments are read as literals.
"""

from __future__ import annotations

from typing import Final

from toolgym.calls.families.entry import LLAMA_CPP, PYTHON, SGLANG, THINK, VLLM, Format

PYTHON_FORMATS: Final[tuple[Format, ...]] = (
    Format(
        name="python",
        families=("Llama 3.2 1B and 3B", "ToolACE", "Gemma 3", "Granite 3.3 without tokens"),
        source=f"{SGLANG}pythonic_detector.py; {VLLM}pythonic_tool_parser.py",
        arguments=PYTHON,
        stop=("<|eot_id|>", "<end_of_turn>"),
    ),
    Format(
        name="tool-code",
        families=("Gemma 3 (tool_code prompt)",),
        source="Google's guide to function calling with Gemma 3",
        arguments=PYTHON,
        stop=("<end_of_turn>",),
    ),
    Format(
        name="llama-4",
        families=("Llama 4 Scout", "Llama 4 Maverick"),
        source=f"{VLLM}llama4_pythonic_tool_parser.py",
        arguments=PYTHON,
        marks=("<|python_start|>",),
        closes=("<|python_end|>",),
        reading=("objects", "python"),
        stop=("<|eot|>", "<|eom|>"),
    ),
    Format(
        name="lfm2",
        families=("LFM2", "LFM2.5"),
        source=f"{SGLANG}lfm2_detector.py; {LLAMA_CPP}LFM2.5-8B-A1B.jinja",
        arguments=PYTHON,
        marks=("<|tool_call_start|>",),
        closes=("<|tool_call_end|>",),
        reading=("objects", "python"),
        thinking=THINK,
        stop=("<|im_end|>",),
        result=("<|tool_response_start|>", "<|tool_response_end|>"),
    ),
    Format(
        name="minicpm-3",
        families=("MiniCPM 3",),
        source=f"{VLLM}minicpm_tool_parser.py; vLLM examples/tool_chat_template_minicpm3.jinja",
        arguments=PYTHON,
        marks=("<|tool_call_start|>",),
        closes=("<|tool_call_end|>",),
        reading=("objects", "python"),
        thinking=("<|thought_start|>", "<|thought_end|>"),
        stop=("<|im_end|>",),
    ),
    Format(
        name="olmo-3",
        families=("OLMo 3",),
        source=f"{VLLM}olmo3_tool_parser.py",
        arguments=PYTHON,
        marks=("<function_calls>",),
        closes=("</function_calls>",),
        reading=("objects", "python"),
        thinking=THINK,
        stop=("<|im_end|>",),
    ),
    Format(
        name="gorilla",
        families=("Gorilla OpenFunctions 2",),
        source="ShishirPatil/gorilla openfunctions",
        arguments=PYTHON,
        marks=("<<function>>",),
        reading=("python",),
        stop=("<|EOT|>",),
    ),
    Format(
        name="nexus-raven",
        families=("NexusRaven 2",),
        source="nexusflowai/NexusRaven-V2 README",
        arguments=PYTHON,
        reading=("line",),
        stop=("<bot_end>",),
    ),
)  # fmt: skip
