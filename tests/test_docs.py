"""The pages in `docs/` are true: their code runs, and their commands, links and names exist.

A block marked `python` runs always, `python train` where the extra is installed, and of `python
no-run`, which needs weights from a hub, the imports are looked up; `python NAME` runs with the
tests of the adapter NAME. The blocks of a page share their names and run in an empty folder.
"""

import ast
import doctest
import importlib
import json
import re
import tomllib
from itertools import groupby
from pathlib import Path

import pytest

from adapters.training.guards.checks import GUARDS
from adapters.training.guards.config import Action, GuardConfig
from aflowgym.envs.compose import ComposeEnv
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.sandbox import open_sandbox
from aflowgym.tasks.loading import REFUSALS as WORKFLOW_REFUSALS
from sqlgym.database.diagnosis import SQL_ERRORS
from sqlgym.datasets.load import REFUSALS
from sqlgym.envs.text_to_sql import TextToSQLEnv
from sqlgym.judging.answers import GoldAnswer, matches
from toolgym import parse_calls, registration
from toolgym.calls import CALL_ERRORS, REPAIRS
from toolgym.chat import CHAT_FAULTS, ChatSettings
from toolgym.runs.metrics import METRICS
from tools.adapter_tests import adapters
from tools.make_docs import PAGES as GENERATED
from tools.make_docs import help_of, our_commands

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = sorted(
    path for path in (ROOT / "docs").glob("*.md") if f"docs/{path.name}" not in GENERATED
)
TEXT = {path.name: path.read_text(encoding="utf-8") for path in WRITTEN}
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.M | re.S)
SLOW = ("own-database.md", "training.md", "workflow-language.md")
"""Pages whose blocks take more than half a second to run."""
SOURCES = [
    path
    for package in ("toolgym", "sqlgym", "aflowgym", "adapters", "examples")
    for path in (ROOT / package).rglob("*.py")
]


def blocks(page: str, info: str) -> list[str]:
    return [found["body"] for found in FENCE.finditer(TEXT[page]) if found["info"] == info]


def pages_with(info: str) -> list[object]:
    return [
        pytest.param(page, marks=pytest.mark.integration if page in SLOW else ())
        for page in TEXT
        if blocks(page, info)
    ]


def prose(page: str) -> str:
    return FENCE.sub("", TEXT[page])


def code_spans(page: str) -> list[str]:
    return re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", prose(page))


def table_under(page: str, head: str) -> list[list[str]]:
    """The cells of every table of a page that has these column names."""
    rows, inside = [], False
    for line in prose(page).splitlines():
        inside = line.startswith("|") and (inside or line == head)
        if inside and line != head and not line.startswith("|---"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            rows.append([cell.strip().replace("\\|", "|") for cell in cells])
    assert rows, f"{page} has no table {head}"
    return rows


def run_blocks(page: str, info: str) -> None:
    names: dict[str, object] = {"__name__": page}
    runner = doctest.DocTestRunner()
    said: list[str] = []
    for number, block in enumerate(blocks(page, info)):
        where = f"{page}, block {number} of `{info}`"
        if ">>>" not in block:
            exec(compile(block, where, "exec"), names)
            continue
        session = doctest.DocTestParser().get_doctest(block, names, where, page, 0)
        runner.run(session, out=said.append, clear_globs=False)
        names = session.globs
    assert not said, "".join(said)


@pytest.mark.parametrize("page", pages_with("python"))
def test_every_block_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    if page == "backends.md":
        pytest.importorskip("openai", reason="needs the extra openai")
    monkeypatch.chdir(tmp_path)
    run_blocks(page, "python")


@pytest.mark.torch
@pytest.mark.parametrize("page", pages_with("python train"))
def test_every_block_that_needs_the_extra_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("datasets", reason="needs the extra train")
    monkeypatch.chdir(tmp_path)
    run_blocks(page, "python train")


@pytest.mark.torch
@pytest.mark.parametrize("page", pages_with("python no-run"))
def test_what_a_block_that_is_not_run_imports_is_there(page):
    pytest.importorskip("trl", reason="needs the extra train")
    for block in blocks(page, "python no-run"):
        for node in ast.walk(ast.parse(block)):
            for alias in node.names if isinstance(node, ast.ImportFrom) else []:
                assert hasattr(importlib.import_module(node.module), alias.name), alias.name


def test_no_block_has_a_mark_that_nothing_reads():
    marks = {found["info"] for text in TEXT.values() for found in FENCE.finditer(text)}

    elsewhere = {f"python {name}" for name in adapters()}  # run by the tests of that adapter
    assert marks <= {"python", "python train", "python no-run", "toml", "mermaid", *elsewhere}


@pytest.mark.parametrize("page", TEXT)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(page)):
        file = (ROOT / "docs" / target).resolve()
        # A generated page is held against the program by the tests of the command line.
        assert file.exists() or f"docs/{target}" in GENERATED, target


def test_the_index_names_every_page():
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", TEXT["README.md"]))

    assert listed == (TEXT.keys() | {Path(page).name for page in GENERATED}) - {"README.md"}


@pytest.fixture(scope="module")
def words_of_the_program() -> set[str]:
    """Every word of our code, the names of its files, and codes that are put together."""
    known = {word for path in SOURCES for word in re.findall(r"\w+", path.read_text("utf-8"))}
    known |= {f"gold_{code}" for code in SQL_ERRORS}
    return known | {path.name.removesuffix(".py") for path in SOURCES}


@pytest.mark.parametrize("page", TEXT)
def test_every_name_in_code_type_is_in_the_program(page, words_of_the_program):
    """Codes, weights, keys, functions: what the program does not have, no page may speak of."""
    named = {span for span in code_spans(page) if re.fullmatch(r"[A-Za-z]\w+", span)}
    made_up = {"answr", "shop", "school", "lab"}  # a slip on purpose; schemas of the data

    assert named - words_of_the_program <= made_up


@pytest.mark.parametrize("page", TEXT)
def test_every_code_that_a_page_prints_exists(page):
    known = {*CALL_ERRORS, *SQL_ERRORS, *WORKFLOW_ERRORS, *REPAIRS, *REFUSALS, *WORKFLOW_REFUSALS}
    known |= {f"gold_{code}" for code in SQL_ERRORS}
    printed = set(re.findall(r"(?:error|refused |^)\[([a-z]+(?:_[a-z]+)+)\]", TEXT[page], re.M))

    assert printed - known <= {"no_such_digit"}  # the code of an invented environment


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of every command by its name, and of the program itself by an empty name."""
    return {"": help_of(), **{name: help_of(name) for name in our_commands()}}


@pytest.mark.parametrize("page", TEXT)
def test_every_command_and_option_exists(page, helps):
    everything = "\n".join(helps.values())
    spans = [" ".join(span.split()) for span in code_spans(page)]
    spans += [line.strip() for line in prose(page).splitlines() if line.startswith("    toolgym")]
    for span in spans:
        command = re.match(r"toolgym (\w+)", span)
        if command:
            assert command[1] in helps, span
        pool = helps[command[1]] if command else everything
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span):
            assert re.search(rf"{option}\b(?!-)", pool), f"{span}: {option}"


def test_every_format_of_a_call_is_read_without_a_repair():
    tools = registration.make("sqlgym/Explore-v0").tools
    formats = table_under("calls.md", "| format | looks like | who writes it |")
    assert len(formats) == 9
    for name, text, _ in formats:
        written = text.strip("`")
        (call,) = parse_calls(json.loads(written) if name == "parsed" else written, tools)

        assert (call.name, call.arguments) == ("describe", {"table_name": "huts"}), name
        assert (call.repairs, call.error) == ((), None), name


ANSWERS = table_under("sql-answers.md", "| gold | answer | verdict | rule |")


@pytest.mark.parametrize(("gold", "answer", "verdict", "rule"), ANSWERS)
def test_every_row_on_answers_is_so(gold, answer, verdict, rule):
    ordered, written = gold.strip("`").startswith("ordered "), gold.strip("`")
    value = ast.literal_eval(written.removeprefix("ordered "))
    rows = value if isinstance(value, list) else [[value]]
    right = GoldAnswer(("name", "age")[: len(rows[0])], tuple(rows), (1,) * len(rows) * ordered)

    assert verdict in ("accepted", "rejected")
    assert matches(right, ast.literal_eval(answer.strip("`"))).equal == (verdict == "accepted")


def test_the_tables_of_metrics_are_the_vocabulary():
    told = table_under("metrics.md", "| metric | unit | meaning |")

    assert told == [[f"`{key}`", each.unit, each.meaning] for key, each in METRICS.items()]
    units = {unit for row in table_under("metrics.md", "| unit | what it is |") for unit in row[:1]}
    assert set(", ".join(units).split(", ")) == {each.unit for each in METRICS.values()}


def test_the_table_of_guards_is_that_of_the_program():
    def doing(guard):
        runs = [(action, len(list(same))) for action, same in groupby(guard.actions)]
        return ", ".join(f"{count} × {action}" if count > 1 else action for action, count in runs)

    rows = table_under("guards.md", "| guard | trips when | does |")
    expected = [[f"`{guard.name}`", doing(guard)] for guard in GUARDS]
    assert [[name, does] for name, _, does in rows] == expected
    actions = table_under("guards.md", "| action | what the trainer does |")
    assert [row[0].strip("`") for row in actions] == list(Action)


def test_the_table_of_settings_of_the_guards_has_the_defaults_of_the_program():
    rows = table_under("guards.md", "| setting | default | meaning |")
    defaults = GuardConfig().model_dump(mode="json").items()

    assert [row[:2] for row in rows] == [
        [f"`{name}`", f"`{json.dumps(v)}`"] for name, v in defaults
    ]


@pytest.mark.torch
def test_the_table_of_arguments_for_trl_has_the_defaults_of_the_config():
    pytest.importorskip("trl", reason="needs the extra train")
    config = importlib.import_module("adapters.trl.config")
    rows = table_under("trl.md", "| argument | default | why |")

    told = [(argument.strip("`"), default) for argument, default, _ in rows]
    assert told == [(name, str(value)) for name, value in config.DEFAULTS.items()]


@pytest.mark.parametrize(
    ("page", "made", "left_out"),
    [
        ("sql-environments.md", TextToSQLEnv, ()),
        ("workflow-environments.md", ComposeEnv, ()),
        ("untrusted-code.md", open_sandbox, ("unsafe",)),
    ],
)
def test_the_table_of_options_names_every_option(page, made, left_out):
    head = "| setting | meaning |" if page == "untrusted-code.md" else "| option | meaning |"
    named = {name for names, _ in table_under(page, head) for name in re.findall(r"`(\w+)`", names)}

    assert named == registration.parameters_of(made)[0].keys() - {"args", *left_out}


def test_the_settings_and_faults_of_a_chat_server_are_those_of_the_program():
    rows = table_under("backends.md", "| field | default | meaning |")
    settings = {name.strip("`") for name, *_ in rows}
    rows = table_under("backends.md", "| code | cause | retried |")
    faults = [row[0].strip("`") for row in rows]

    assert settings == ChatSettings.model_fields.keys() - {"model"}
    assert faults == list(CHAT_FAULTS)


def test_the_table_of_extras_names_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = table_under("quickstart.md", "| extra | what it brings |")
    named = [name for names, _ in rows for name in re.findall(r"`([\w-]+)`", names)]

    assert sorted(named) == sorted(project["optional-dependencies"])
