"""No text can make a reader slow: time grows with the length of a text, and not with its square.

`tests/growth` lists every function that reads text of a model, of a server or of a stranger's file,
and makes the degenerate texts. A module that reads text and is not on the list fails the first test
here; a reader that takes more than six times as long for four times the text fails the slow one.
"""

import ast
import logging
import sys
from pathlib import Path
from types import FunctionType

import pytest

pytest.importorskip("transformers", reason="some readers need the extra `train`")

from tests.growth import of_aflowgym, of_sqlgym, of_toolgym
from tests.growth.measuring import PACKAGES, Growth, Reader, growth, worst
from tests.growth.shapes import shapes, texts

# What libraries say of a text quotes it, half characters and all, and pytest cannot pass that on.
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).resolve().parents[1]
READERS = [*of_toolgym.READERS, *of_sqlgym.READERS, *of_aflowgym.READERS]
READS_TEXT = {
    "json.loads", "json.load", "ast.parse", "ast.literal_eval", "csv.reader", "yaml.safe_load",
    "sqlglot.parse_one", "sqlglot.parse", "json_repair.loads", "shlex.split",
}  # fmt: skip
"""Calls that read a text of any length; every use of `re` counts as well."""
ELSEWHERE = {
    "adapters.commands.train": "reads what this package wrote",
    "adapters.commands.train_options": "reads the options of whoever starts a training",
    "adapters.commands.train_run": "reads an environment's id and names of folders",
    "adapters.commands.train_with_trl": "reads what this package wrote",
    "adapters.training.models.chat_templates": "quotes the name of a token",
    "adapters.training.models.stored_weights": "reads the index of a model folder, by `json`",
    "adapters.training.models.published.catalogue": "reads what this package wrote",
    "adapters.training.runs.recipe_tasks": "reads what this package wrote",
    "adapters.training.models.places": "reads the name of a model that somebody typed",
    "adapters.lab.code_hash": "reads this package's own code",
    "adapters.lab.definitions": "reads this package's own code",
    "adapters.lab.units": "checks names of its own",
    "adapters.openenv.server": "matches paths of at most 16 KB, by patterns without repetition",
    "adapters.reference.checkpoint": "reads what this package wrote",
    "adapters.trl.environment": "reads an environment's id",
    "adapters.trl.datasets": "reads a data set's own rows as JSON, by the standard library",
    "adapters.trl.callbacks": "reads names of files that this package wrote",
    "aflowgym.answers.math.math_worker": "reads lines that its parent process wrote",
    "aflowgym.backends.replay": "reads what a recorder wrote, by the standard library",
    "aflowgym.tasks.loading": "reads lines of JSON, by `json`; its values go to `layouts`",
    "aflowgym.expectation.search": "reads what this package wrote",
    "aflowgym.sandbox.child": "reads what the parent process wrote",
    "aflowgym.sandbox.process": "reads what the worker wrote, before any program runs",
    "aflowgym.sandbox.subset": "hands a program to the interpreter that runs it",
    "aflowgym.sandbox.worker": "reads what the parent process wrote",
    "aflowgym.statistics.charts": "reads workflows that were parsed and printed again",
    "sqlgym.datasets.layout": "reads what this package wrote",
    "sqlgym.datasets.rows": "reads lines of JSON, by the standard library",
    "sqlgym.datasets.absence": "reads the names and texts of a database",
    "sqlgym.datasets.unanswerable": "reads the questions and names of a data set",
    "sqlgym.datasets.spider": "reads files of JSON, by the standard library",
    "sqlgym.datasets.synthesised": "reads what this package wrote, and names of files",
    "sqlgym.tasks.gold": "reads what this package wrote",
    "toolgym.commands.completion": "reads the words before the cursor of whoever types",
    "toolgym.report.library": "reads the scripts that Vega's package brings",
    "toolgym.runs.dashboards": "reads names of dashboards, and what this package wrote",
    "toolgym.chat.cache": "reads what this package wrote",
    "toolgym.calls.alternation": "makes patterns of this package's own texts",
    "toolgym.calls.families.entry": "makes patterns of this package's own texts",
    "toolgym.calls.tag_sets": "makes patterns, by which `xml_forms` reads",
    "toolgym.testing.adapter": "reads the scripts that this package wrote",
    "toolgym.testing.chat_server": "a server for tests",
    "toolgym.cli": "reads docstrings of commands",
    "toolgym.commands": "reads options of whoever starts a command",
    "toolgym.commands.doctor": "reads the metadata of installed distributions",
    "toolgym.commands.envs": "reads the code of the environments that are installed",
    "toolgym.policies.chat": "reads arguments that `chat.reply` has bounded, by `json`",
    "toolgym.records": "reads files of JSON, by the standard library",
    "toolgym.tools": "reads docstrings of whoever writes an environment",
}
"""Modules that read text, but none of a model, a server or a stranger; or by other readers."""


@pytest.fixture(autouse=True)
def no_log():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def modules_that_read() -> set[str]:
    """Modules that use regular expressions, or a parser of some format."""
    found = set()
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            used = {
                f"{node.value.id}.{node.attr}"
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            }
            by_pattern = {use for use in used if use.startswith("re.")} - {"re.Pattern", "re.Match"}
            if by_pattern or used & READS_TEXT:
                parts = file.relative_to(ROOT).with_suffix("").parts
                found.add(".".join(parts).removesuffix(".__init__"))
    return found


def test_every_module_that_reads_text_has_a_reader_or_a_reason():
    covered = {module for reader in READERS for module in reader.covers}
    reading = modules_that_read()

    assert covered & ELSEWHERE.keys() == set()
    assert sorted(reading - covered - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - reading) == []


@pytest.mark.parametrize(
    "reader",
    [each for each in READERS if each.covers and isinstance(each.read, FunctionType)],
    ids=lambda reader: reader.name,
)
def test_a_reader_enters_the_modules_that_it_is_said_to_cover(reader):
    entered = set()

    def note(frame, event, argument):
        entered.add(frame.f_globals.get("__name__"))

    samples = [text.fill(9) for text in texts(reader.marks[:20], reader.before, reader.after)]
    sys.setprofile(note)
    try:
        for sample in ["", *samples[::7]]:
            try:
                reader.read(sample)
            except reader.refuses:
                continue
    finally:
        sys.setprofile(None)

    assert sorted(set(reader.covers) - entered) == []


def test_every_reader_on_the_list_reads_a_text_or_refuses_it_as_documented():
    for reader in READERS:
        for text in (" ", "a"):
            try:
                reader.read(text)
            except reader.refuses:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_short_degenerate_text_makes_a_reader_raise_what_it_does_not_document(reader):
    for shape in shapes(reader.marks):
        for size in (1, 60):
            try:
                reader.read(shape.fill(size))
            except reader.refuses:
                continue


def test_there_are_more_than_eighty_shapes_for_each_reader():
    assert min(len(list(shapes(reader.marks))) for reader in READERS) >= 80
    assert len({shape.name for shape in shapes(("<a>", "</a>"))}) == len(
        list(shapes(("<a>", "</a>")))
    )


@pytest.mark.slow
def test_a_reader_that_is_quadratic_is_found():
    quadratic = Reader("a", lambda text: [text.find("\0", place) for place in range(len(text))])

    assert growth(quadratic, next(shapes(())), 256_000).is_too_steep


def test_a_reader_that_is_linear_is_not_accused():
    linear = Reader("a", lambda text: sum(sign == "!" for sign in text))

    assert not growth(linear, next(shapes(())), 1 << 20).is_too_steep
    assert not Growth("a", 1 << 20, shorter=0.001, longer=0.09).is_too_steep


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_degenerate_text_takes_more_than_its_length_explains(reader):
    found = worst(reader)
    print(f"{reader.name:60} {found}")

    assert not found.is_too_steep, f"{reader.name}: {found}"
