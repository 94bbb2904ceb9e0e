"""Texts that models could have written, as we and other readers read them.

The readers of sglang need an interpreter that holds them (no torch; skipped without):

    python3 -m venv DIR && DIR/bin/pip install --no-deps sglang==0.5.23
    DIR/bin/pip install pydantic openai msgspec orjson partial-json-parser regex
    TOOLGYM_SGLANG_PYTHON=DIR/bin/python python -m pytest tests/toolgym/calls/test_oracles.py

`tools/compare_calls.py` writes the table of the slow tests as Markdown.
"""

import os
from collections import Counter
from dataclasses import replace

import pytest

from tests.oracles.comparison import Row, kind, read, shown, table
from tests.oracles.detectors import NO_SGLANG, VARIABLE, rows
from tests.oracles.rules import FAULT, OPEN, RULES, reason
from tests.oracles.shapes import SHAPES
from tests.oracles.written import MISTAKES, Written, texts

OPEN_SHARE = 0.02
"""Of the texts of a format, at most so many may be read otherwise for what is known and open."""
needs_sglang = pytest.mark.skipif(VARIABLE not in os.environ, reason=NO_SGLANG)
by_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
HERMES = next(shape for shape in SHAPES if shape.name == "hermes")


def assert_no_faults(compared):
    compared = list(compared)
    faults = [case for row in compared for case in row.faults]
    print(table(compared))
    assert not faults, f"{len(faults)}\n" + "\n".join(map(shown, faults[:20]))
    return compared


def assert_little_is_open(compared):
    for row in compared:
        still_open = sum(row.reasons[name] for name in OPEN)
        assert still_open <= max(3, row.counts.total() * OPEN_SHARE)


@by_shape
def test_a_text_as_it_was_written_is_read_as_it_was_meant(shape):
    row = Row(shape.name, "the writer")
    for each in texts(shape, 400, seed=1):
        if not each.mistake:
            row.add(read(shape, each, lambda text, each=each: each.meant))
    assert_no_faults([row])
    assert row.counts["both"] > row.counts.total() * 0.6


@needs_sglang
def test_what_sglang_finds_is_ours_or_excused():
    assert_no_faults(rows(os.environ[VARIABLE], 12))


@needs_sglang
@pytest.mark.slow
def test_what_sglang_finds_in_two_thousand_texts_of_a_format_is_ours_or_excused():
    compared = assert_no_faults(rows(os.environ[VARIABLE], 2000))
    assert_little_is_open(compared)
    met = sum((row.reasons for row in compared), Counter())
    print("needed nowhere:", ", ".join(name for name in (*RULES, *OPEN) if not met[name]))


@pytest.mark.slow
@pytest.mark.torch
def test_what_a_response_template_finds_in_two_thousand_texts_is_ours_or_excused():
    pytest.importorskip("trl", reason="needs the extra `train`")
    from tests.oracles import responses

    assert_little_is_open(assert_no_faults(responses.rows(2000)))


def case_of(text, theirs, mistake="dropped"):
    return read(HERMES, Written(text, [CALL], mistake), lambda text: theirs)


CALL = ("describe", {"table_name": "a"})
OTHER = ("describe", {"table_name": "b"})


@pytest.mark.parametrize(
    ("text", "theirs", "of_kind", "why"),
    [
        (HERMES.write([CALL]), [CALL], "both", ""),
        (HERMES.write([CALL, OTHER]), [CALL], "different", ""),
        ("I look.", [], "neither", ""),
        (HERMES.write([CALL]), [], "ours only", ""),
        (HERMES.write([CALL]), [OTHER], "different", "ours was meant"),
        (HERMES.write([OTHER]), [CALL], "different", "ours stands there"),
        ("I look.", [CALL], "theirs only", "silent on a damaged text"),
        (HERMES.write([CALL])[:-20], [CALL], "theirs only", "cut off"),
    ],
)
def test_a_call_that_only_they_found_is_excused_by_what_stands_in_the_text(
    text, theirs, of_kind, why
):
    case = case_of(text, theirs)
    assert (kind(case), reason(case)) == (of_kind, why)


def test_a_call_in_a_thought_is_excused_where_they_do_not_find_it_outside():
    text = f"<think>\n{HERMES.write([CALL])}\n</think>\nI look."
    case = case_of(text, [CALL])
    outside = replace(case, reader=lambda text: [CALL] * text.count("<tool_call>"))
    assert reason(outside) == "in a thought"
    assert reason(case) != "in a thought"


def test_a_text_as_it_was_written_is_a_fault_if_we_do_not_read_it():
    assert reason(case_of("I look.", [], mistake="")) == FAULT
    assert reason(case_of("I look.", [], mistake="cut")) == ""


@by_shape
def test_one_seed_gives_one_sequence_of_texts_with_every_mistake(shape):
    first, again, other = (list(texts(shape, 300, seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert {each.mistake for each in first} == {"", *MISTAKES}
