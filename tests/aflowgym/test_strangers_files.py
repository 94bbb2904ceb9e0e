"""What Python itself does not read in a stranger's file is refused like any other broken entry.

Numbers of thousands of digits, brackets of any depth, keys that cannot be hashed, values made to
share a hash: each was an exception that nobody had told of, or took the square of its size.
"""

import pytest

from aflowgym import load_tasks
from aflowgym.answers import read_tests
from aflowgym.answers.assertions import UnsupportedTest
from aflowgym.answers.literals import read_literal
from aflowgym.backends import Replay
from aflowgym.tasks.layouts import Refused, task_of
from toolgym.errors import ConfigurationError

DIGITS = "9" * 5_000
MODULUS = 2**61 - 1  # integers that differ by it share their hash


def test_a_line_with_a_number_too_long_is_refused_and_the_rest_loads(tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text(f'{{"a": {DIGITS}}}\n{{"question": "1 + 1?", "answer": "#### 2"}}\n')

    tasks = load_tasks(file, "train")

    assert len(tasks) == 1
    assert [refusal.code for refusal in tasks.refused.values()] == ["not_json"]


def test_a_recording_nested_too_deeply_is_no_recording(tmp_path):
    file = tmp_path / "recording.jsonl"
    file.write_text("[" * 100_000)

    with pytest.raises(ConfigurationError, match="is not a recording"):
        Replay.load(file)


@pytest.mark.parametrize(
    "test",
    [
        "assert f({[]: 1}) == 1",
        f"assert f(0x{'f' * 5_000}) in 1",
        f"assert f({'-' * 2_000}1) == 1",
        f"assert f({'1+' * 2_000}1) == 1",
        f"assert {'a.' * 2_000}b",
        "assert " + "(" * 5_000,
    ],
    ids=["unhashable", "long number", "signs", "a long sum", "a long name", "brackets"],
)
def test_a_test_that_cannot_be_read_is_not_supported(test):
    with pytest.raises(UnsupportedTest, match=r"over literals|not Python"):
        read_tests(test, "f")


def test_tests_too_deep_for_python_refuse_their_entry():
    entry = {"test_list": ["-" * 100_000 + "1"], "text": "Do it.", "code": "x = 1"}

    with pytest.raises(Refused, match="unsupported_test"):
        task_of(entry, "1")


def test_values_that_share_a_hash_are_no_literal_and_equal_ones_are():
    with pytest.raises(ValueError, match="share a hash"):
        read_literal("{" + ", ".join(str(place * MODULUS) for place in range(2_000)) + "}")

    assert read_literal(f"set([{'1, ' * 5_000}2])") == {1, 2}
