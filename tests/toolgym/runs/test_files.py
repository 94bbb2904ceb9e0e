"""Files of JSON that a stranger wrote: what Python's own reader cannot take is told."""

from pathlib import Path

import pytest

from sqlgym.datasets.rows import JsonLines
from sqlgym.datasets.spider import read_json
from toolgym.errors import ConfigurationError
from toolgym.runs.files import read_lines, read_object

DEEP = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
LONG = '{"a": ' + "9" * 5_000 + "}"


def as_it_is(value):
    return value


@pytest.fixture(params=[DEEP, LONG], ids=["deep", "a long number"])
def file(request, tmp_path: Path) -> Path:
    path = tmp_path / "strange.json"
    path.write_text(f"{request.param}\n", encoding="utf-8")
    return path


def test_an_object_that_python_cannot_read_is_refused(file):
    with pytest.raises(ConfigurationError, match=r"strange\.json is not JSON"):
        read_object(file)


def test_a_line_that_python_cannot_read_is_refused_by_its_number(file):
    with pytest.raises(ConfigurationError, match=r"Line 1 of .*strange\.json is damaged"):
        list(read_lines(file, as_it_is, cut_off=lambda: None))


def test_a_data_set_that_python_cannot_read_is_refused(file):
    with pytest.raises(ConfigurationError, match=r"nested too deeply|a number that is too long"):
        read_json(file)


def test_a_row_that_python_cannot_read_is_an_error_of_that_row(file):
    with pytest.raises(ValueError, match=r"nested too deeply|a number that is too long"):
        JsonLines(file)[0]
