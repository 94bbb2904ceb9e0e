"""The page of call formats, made from the table of the parser.

`tools/make_docs.py` writes the page. Its example messages are test fixtures.
"""

import json
from pathlib import Path

from toolgym.calls import FORMATS, Format

ROOT = Path(__file__).resolve().parent.parent
MESSAGES = ROOT / "tests" / "toolgym" / "calls" / "call_fixtures.jsonl"
HEAD = """\
# Call formats

Model families write their tool calls in different formats. Environments and `toolgym.parse_calls`
automatically recognize the {formats} formats on this page, which are used by {families} model
families. A call in any of these formats is parsed without a repair.

Do not edit this page, which `python tools/make_docs.py` generates. `formats_in` returns the format
of each call in a message:

```python
>>> from toolgym.calls import formats_in
>>> text = '<function_call> {{"name": "describe", "arguments": {{"table_name": "singer"}}}}'
>>> properties = {{"table_name": {{"type": "string"}}}}
>>> formats_in(text, [{{"name": "describe", "parameters": {{"properties": properties}}}}])
['granite-20b']

```

If several formats share the same markers, `formats_in` returns the first of these formats.

## Rules

{rules}
## Table of formats

In the table, `\u23ce` represents a line break. The last column lists the tokens that end a turn.

| format | families | message with a call | arguments | reasoning | end of turn |
|---|---|---|---|---|---|
"""
RULES = """\
* Calls inside reasoning, or inside tool results that the model has made up, are never executed.
* A truncated call is an error and is never executed.
* An ambiguous call, such as a call with two values for one key, is an error.
* Call markers are ignored if they appear within a sentence or quotation marks, or enclose no call.
* Placeholders such as `<function-name>` are not treated as calls.
* A Python call that appears among other Python statements is not treated as a tool call.
* All markers in the table below are escaped in tool results, so data cannot imitate a call.
"""
SOURCES = """
The formats are based on the parsers of SGLang and vLLM, the chat templates in llama.cpp, and the
documentation of the models. `toolgym.calls.FORMATS` lists the source of each format.
"""


def formats_page() -> str:
    """Return the text of `docs/call-formats.md`."""
    families = {family for entry in FORMATS for family in entry.families}
    head = HEAD.format(formats=len(FORMATS), families=len(families), rules=RULES)
    messages: dict[str, str] = {}
    for line in MESSAGES.read_text(encoding="utf-8").splitlines():
        fixture = json.loads(line)
        messages.setdefault(fixture["format"], fixture["one"])
    rows = "".join(_row(entry, messages[entry.name]) for entry in FORMATS)
    return f"{head}{rows}{SOURCES}"


def _row(entry: Format, message: str) -> str:
    thinking = " ".join(map(_code, entry.thinking)) if entry.thinking else ""
    stop = " ".join(map(_code, entry.stop))
    families = ", ".join(entry.families)
    cells = (entry.name, families, _code(message), entry.arguments, thinking, stop)
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    """Return a text as Markdown code for a cell of a table."""
    shown = text.replace("\n", "\u23ce").replace("|", "\\|").strip()
    fence = "``" if "`" in shown else "`"
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
