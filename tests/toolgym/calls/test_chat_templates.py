"""Calls as the chat templates of real families write them, read back.

TRL ships the templates of many families. Each is rendered with one message of calls, as the data of
an installed library, and what the model would have had to write is read: the same names and
arguments come back, and nothing was repaired (but `True` as Python writes it, in bare text). A
template that writes no calls is left out, and so is what a template refuses to write.
"""

import importlib.util
import json
from pathlib import Path

import pytest
from jinja2 import TemplateError

from tests.toolgym.calls.toy_sql_tools import PLAIN, TOOLS, TYPED
from toolgym.calls import parse_calls

pytestmark = [pytest.mark.torch, pytest.mark.integration]

SPECS = {**TOOLS, **TYPED, **PLAIN}
SCHEMAS = [spec.schema() for spec in SPECS.values()]
SQL = "SELECT name\nFROM \"singer\"\nWHERE age >= 20 AND note != 'it''s <b>' -- 100 %"
MESSAGES = {
    "one call": [("describe", {"table_name": "singer"})],
    "two calls": [("describe", {"table_name": "singer"}), ("turn", {"dial": 3, "to": -2})],
    "no arguments": [("look", {})],
    "SQL": [("query", {"sql": SQL})],
    "types": [("plan", {"steps": [{"a": [1, "b"]}, {}], "ratio": 0.25, "dry": True})],
    "list": [("join", {"parts": ["one", "two words", "Ä"], "sep": "; "})],
}
QUESTION = {"role": "user", "content": "How many singers?"}
NO_ESCAPES = {"lfm2_2_5", "lfm2_2_5_v2"}  # a quote inside of their quotes stays as it is


def templates():
    found = importlib.util.find_spec("trl")
    folder = Path(found.submodule_search_locations[0]) / "chat_templates" if found else Path("none")
    return sorted(folder.glob("*.jinja"))


def rendered(template, messages, *, ask=False):
    from transformers.utils.chat_template_utils import render_jinja_template

    texts, _ = render_jinja_template(
        conversations=[messages],
        tools=SCHEMAS,
        chat_template=template,
        add_generation_prompt=ask,
        bos_token="",
        eos_token="</s>",
    )
    return texts[0]


def message(calls, content, *, as_text):
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "id": f"call{k:05}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": json.dumps(arguments) if as_text else arguments,
                },
            }
            for k, (name, arguments) in enumerate(calls)
        ],
    }


def written(template, calls, content):
    """What the model writes; None if the template refuses the message."""
    for as_text in (False, True):
        try:
            prompt = rendered(template, [QUESTION], ask=True)
            whole = rendered(template, [QUESTION, message(calls, content, as_text=as_text)])
        except (TemplateError, TypeError):
            continue
        if whole.startswith(prompt):
            return whole[len(prompt) :]
        return whole.partition(QUESTION["content"])[2]
    return None


def misread(path, content):
    """The texts of a template that are not read as they were meant; None if it writes no calls."""
    template = path.read_text()
    texts = {name: written(template, calls, content) for name, calls in MESSAGES.items()}
    texts = {name: text for name, text in texts.items() if text is not None}
    if "describe" not in texts.get("one call", ""):
        return None
    wrong = []
    for name, text in texts.items():
        if name == "SQL" and path.stem in NO_ESCAPES:
            continue
        if not all(called in text for called, _ in MESSAGES[name]):
            continue  # this template writes the first call of a message only
        calls = [(call.name, call.arguments, call.repairs) for call in parse_calls(text, SPECS)]
        if calls != [(*call, ()) for call in MESSAGES[name]]:
            wrong.append((path.stem, text, calls))
    return wrong


@pytest.mark.parametrize("content", ["", "I look at it."], ids=["alone", "with words"])
def test_what_the_chat_templates_write_is_read_back(content):
    pytest.importorskip("transformers", reason="needs the extra `train`")
    paths = templates()
    if not paths:
        pytest.skip("no chat templates are installed")
    found = [each for path in paths if (each := misread(path, content)) is not None]

    assert len(found) > 40
    assert [each for wrong in found for each in wrong] == []
    assert {path.stem for path in paths} >= NO_ESCAPES
