"""The time to read a text grows with its length, not with its square.

`tests/growth` lists the functions that read text of a model, of a server or of a stranger's file,
and makes degenerate texts. Four times the text may take at most six times as long. Ten readers that
meet text of models and servers gate every change; all of them run nightly.
"""

import logging

import pytest

pytest.importorskip("transformers", reason="some readers need the extra `train`")

from tests.growth import of_aflowgym, of_sqlgym, of_toolgym
from tests.growth.measuring import Reader, growth, worst
from tests.growth.shapes import shapes

# Warnings of libraries quote the text with its lone surrogates, which pytest cannot pass on.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
READERS = {
    reader.name: reader
    for reader in [*of_toolgym.READERS, *of_sqlgym.READERS, *of_aflowgym.READERS]
}
GATE = (
    "toolgym.calls.parse_calls",
    "toolgym.calls.bind_call of typed values",
    "toolgym.env.ToolEnv.step and what is told of it",
    "toolgym.chat.reply.read_reply",
    "sqlgym.judging.judge.check_answer of a table",
    "sqlgym.database.database.Database.query",
    "sqlgym.database.diagnosis.explain_message",
    "aflowgym.parse",
    "aflowgym.answers.math.mathematics.judge_math of a reply",
    "aflowgym.answers.code.extract_code",
)
"""Readers that gate every change: calls, replies, answers, queries, workflows and programs."""


@pytest.fixture(autouse=True)
def no_log():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_a_reader_takes_a_short_text_or_refuses_it_as_documented():
    for reader in READERS.values():
        for text in (" ", "a"):
            try:
                reader.read(text)
            except reader.refuses:
                continue


@pytest.mark.nightly
@pytest.mark.parametrize("name", READERS)
def test_no_short_degenerate_text_makes_a_reader_raise_what_it_does_not_document(name):
    reader = READERS[name]
    for shape in shapes(reader.marks):
        for size in (1, 60):
            try:
                reader.read(shape.fill(size))
            except reader.refuses:
                continue


@pytest.mark.nightly
def test_a_quadratic_reader_is_found_and_a_linear_one_is_not():
    quadratic = Reader("a", lambda text: [text.find("\0", place) for place in range(len(text))])
    linear = Reader("a", lambda text: sum(sign == "!" for sign in text))

    assert growth(quadratic, next(shapes(())), 256_000).is_too_steep
    assert not growth(linear, next(shapes(())), 1 << 20).is_too_steep


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.integration if name in GATE else pytest.mark.nightly)
        for name in READERS
    ],
)
def test_no_degenerate_text_takes_more_than_its_length_explains(name):
    found = worst(READERS[name])

    assert not found.is_too_steep, f"{name}: {found}"
