"""What the chat template of each kind of family writes reads back, from text to tokens and back."""

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra `train`")

from tests.adapters.call_templates import FAMILIES, Family, tokenizer_of, turn_of
from tests.toolgym.calls.fixtures import BY_NAME
from toolgym.calls import formats_in, opened_thought, parse_calls

pytestmark = pytest.mark.torch

TOOLS = [
    {
        "name": "count",
        "parameters": {
            "properties": {"text": {"type": "string"}, "twice": {"type": "boolean"}},
            "required": ["text"],
        },
    },
    {"name": "answer", "parameters": {"properties": {"value": {"type": ["string", "number"]}}}},
]
ONE = [("count", {"text": "a 'b' \"c\"\nd <x> é , e", "twice": True})]
TWO = [*ONE, ("answer", {"value": 1.5})]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.format)
def test_calls_that_a_template_renders_read_back_from_their_tokens(family: Family) -> None:
    tokenizer: Any = tokenizer_of(family)
    for calls in (ONE, TWO) if family.between is not None else (ONE,):
        said = turn_of(tokenizer, family, calls=calls)
        ids = tokenizer(said, add_special_tokens=False)["input_ids"]
        assert ids[-1] in tokenizer.convert_tokens_to_ids(list(family.stop))
        written = tokenizer.decode(ids[:-1], skip_special_tokens=False)
        text = opened_thought(family.assistant + family.thought) + written
        found = parse_calls(text, TOOLS)
        assert [(call.name, call.arguments) for call in found] == calls
        assert [(call.error, call.repairs) for call in found] == [(None, ())] * len(calls)
        (told,) = set(formats_in(text, TOOLS))
        assert BY_NAME[told].marks == BY_NAME[family.format].marks or (
            set(BY_NAME[told].marks) & set(BY_NAME[family.format].marks)
        )
