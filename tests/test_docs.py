"""The written pages of the documentation are true: what they show runs, what they name exists.

A block marked `python` runs always, `python train` where the extra is installed, and of `python
no-run`, which needs weights from a hub, the imports are looked up; `python NAME` runs with the
tests of the adapter NAME. The blocks of a page share their names and run in an empty folder.
"""

import ast
import dataclasses
import doctest
import importlib
import inspect
import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from adapters.commands import audit
from adapters.training.guards.checks import GUARDS
from adapters.training.guards.config import Action, GuardConfig
from adapters.training.guards.fault_limit import WINDOW
from aflowgym import expected
from aflowgym.dsl.tokens import TIMES_RANGE
from aflowgym.envs.base import BUDGET
from aflowgym.envs.compose import ComposeEnv
from aflowgym.envs.operate import OperateEnv
from aflowgym.execution.errors import WORKFLOW_ERRORS
from aflowgym.sandbox import open_sandbox
from aflowgym.tasks.loading import DRAWS
from sqlgym.database import description, memory, schema, statement_size, turnstile
from sqlgym.database.database import MOST_OPEN, open_database
from sqlgym.database.diagnosis import SQL_ERRORS
from sqlgym.database.limits import Limits
from sqlgym.database.query_result import CACHE_BYTES, CACHE_ENTRIES
from sqlgym.database.render import LONG_VALUE, MAX_CHARS, MAX_ROWS
from sqlgym.datasets.bundled import dataset_folder
from sqlgym.datasets.load import REFUSALS, load_tasks
from sqlgym.datasets.rows import STREAMED
from sqlgym.datasets.synthesised import SynthesisOptions
from sqlgym.datasets.tiny_worlds import SEEDS
from sqlgym.envs import explore
from sqlgym.envs.explore import TABLES
from sqlgym.judging.answers import GoldAnswer, matches, refusal
from sqlgym.judging.judge import LIMITS as JUDGED
from sqlgym.judging.several_results import several_results
from sqlgym.synthesis import REJECTIONS, REPHRASINGS_REFUSED, SHAPES, engine, proof, synthesize
from sqlgym.synthesis.reading import profiling as table_reading
from sqlgym.synthesis.reading.profiling import MOST_TABLES
from sqlgym.tasks.hardness import hardness
from toolgym import parse_calls, registration
from toolgym.calls import CALL_ERRORS, REPAIRS
from toolgym.calls.json_reading import MAX_MENDED
from toolgym.calls.source import MAX_CALLS
from toolgym.chat import reply
from toolgym.curriculum import Trust
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
SOURCES = [
    path
    for package in ("toolgym", "sqlgym", "aflowgym", "adapters", "examples")
    for path in (ROOT / package).rglob("*.py")
]


def blocks(page: str, info: str) -> list[str]:
    return [found["body"] for found in FENCE.finditer(TEXT[page]) if found["info"] == info]


def pages_with(info: str) -> list[str]:
    return [page for page in TEXT if blocks(page, info)]


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
    known = {*CALL_ERRORS, *SQL_ERRORS, *WORKFLOW_ERRORS, *REPAIRS, *REFUSALS}
    known |= {f"gold_{code}" for code in SQL_ERRORS}
    printed = set(re.findall(r"(?:error|refused |^)\[([a-z]+(?:_[a-z]+)+)\]", TEXT[page], re.M))

    assert printed - known <= {"no_such_digit"}  # the code of an invented environment


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    return {name: help_of(name) for name in our_commands()}


@pytest.mark.parametrize("page", TEXT)
def test_every_command_and_option_exists(page, helps):
    spans = [" ".join(span.split()) for span in code_spans(page)]
    spans += [line.strip() for line in prose(page).splitlines() if line.startswith("    toolgym")]
    for span in spans:
        command = re.match(r"toolgym (\w+)", span)
        if command:
            assert command[1] in helps, span
        pool = helps[command[1]] if command else "\n".join([help_of(), *helps.values()])
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span):
            assert re.search(rf"{option}\b(?!-)", pool), f"{span}: {option}"


def test_every_format_of_a_call_is_read_without_a_repair():
    tools = registration.make("sqlgym/Explore-v0").tools
    formats = table_under("one-call.md", "| format | looks like | who writes it |")
    assert len(formats) == 9
    for name, text, _ in formats:
        written = text.strip("`")
        (call,) = parse_calls(json.loads(written) if name == "parsed" else written, tools)

        assert (call.name, call.arguments) == ("describe", {"table_name": "huts"}), name
        assert (call.repairs, call.error) == ((), None), name


HALF = {0.5: "half"}
IN_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ANSWERS = table_under("sql-answers.md", "| gold | answer | verdict | rule |")


@pytest.mark.parametrize(("gold", "answer", "verdict", "rule"), ANSWERS)
def test_every_row_on_answers_is_so(gold, answer, verdict, rule):
    ordered, written = gold.strip("`").startswith("ordered "), gold.strip("`")
    value = ast.literal_eval(written.removeprefix("ordered "))
    rows = value if isinstance(value, list) else [[value]]
    right = GoldAnswer.of(["name", "age"][: len(rows[0])], rows, ordered)

    assert verdict in ("accepted", "rejected")
    assert matches(right, ast.literal_eval(answer.strip("`"))).equal == (verdict == "accepted")


def test_the_table_of_databases_is_the_data():
    levels = ("easy", "medium", "hard", "extra")
    expected = []
    for split in ("train", "dev"):
        tasks = load_tasks("bundled", split)
        for item in sorted({task.item for task in tasks}):
            asked = [task for task in tasks if task.item == item]
            tables = len(open_database(asked[0].database).schema.tables)
            counted = Counter(hardness(task.gold_sql) for task in asked)
            numbers = [tables, len(asked), *(counted[level] for level in levels)]
            expected.append([item, split, *map(str, numbers)])
    sums = [sum(int(row[place]) for row in expected) for place in range(2, 8)]
    expected.append(["all", "", *map(str, sums)])

    head = f"| database | split | tables | questions | {' | '.join(levels)} |"
    assert table_under("data-sets.md", head) == expected


def test_every_shape_has_an_example_that_is_a_fair_task_of_its_level():
    rows = table_under("synthesis.md", "| shape | level | question | gold SQL |")
    rows = [[name, "town_library", *rest] for name, *rest in rows]
    rows += table_under("synthesis.md", "| shape | database | level | question | gold SQL |")
    for _, name, level, question, written in rows:
        sql = written.strip("`")

        assert level == hardness(sql), question
        found = [*dataset_folder("bundled-2").rglob(f"{name}.sqlite")]
        if not found:  # one of Spider's
            continue
        database = open_database(found[0])
        result = database.query(sql)
        assert refusal(result, proof.MOST_ROWS) is None, question
        assert several_results(database, sql, result) is None, question
    assert sorted(name.strip("`") for name, *_ in rows) == sorted(SHAPES)


def test_every_reason_and_every_option_of_the_synthesis_is_told():
    told = {"candidate": REJECTIONS, "rewording": REPHRASINGS_REFUSED}
    for what, codes in told.items():
        rows = table_under("synthesis.md", f"| code | why a {what} is not kept |")
        assert [(code.strip("`"), why) for code, why in rows] == list(codes.items())
    rows = table_under("synthesis.md", "| option | meaning |")
    taken = inspect.signature(synthesize).parameters.keys() - {"database"}
    assert {name.strip("`") for name, _ in rows} == taken


def test_the_tables_of_metrics_are_the_vocabulary():
    told = table_under("metrics.md", "| metric | unit | meaning |")

    assert told == [[f"`{key}`", each.unit, each.meaning] for key, each in METRICS.items()]
    units = {unit for row in table_under("metrics.md", "| unit | what it is |") for unit in row[:1]}
    assert set(", ".join(units).split(", ")) == {each.unit for each in METRICS.values()}


def test_the_page_on_metrics_says_which_of_them_break_and_which_the_warmup_has():
    def listed(names):
        *most, last = (f"`{name}`" for name in names)
        return f"{', '.join(most)} and {last}"

    text = " ".join(TEXT["metrics.md"].split())
    assert f"Of {listed(m.key for m in METRICS.values() if m.breaks)} a value" in text
    warm = (m.key for m in METRICS.values() if "warmup" in m.phases)
    assert f"In the warm-up there are {listed(warm)}." in text


def test_the_table_of_guards_is_that_of_the_program():
    def doing(guard):
        runs = [(action, len(list(same))) for action, same in groupby(guard.actions)]
        return ", ".join(f"{count} × {action}" if count > 1 else action for action, count in runs)

    rows = table_under("guards.md", "| guard | trips when | steps | does |")
    expected = [[f"`{g.name}`", str(g.steps(GuardConfig())), doing(g)] for g in GUARDS]
    assert [[name, steps, does] for name, _, steps, does in rows] == expected
    actions = table_under("guards.md", "| action | what the trainer does |")
    assert [row[0].strip("`") for row in actions] == list(Action)


@pytest.mark.parametrize(
    ("guard", "fields"),
    [
        ("update_collapse", ("collapse_ratio", "collapse_errors")),
        ("collapse_share", ("collapse_share", "collapse_window")),
        ("validity", ("min_validity",)),
        ("entropy_floor", ("entropy_floor",)),
        ("entropy_ceiling", ("entropy_ceiling",)),
        ("kl", ("kl_ceiling",)),
        ("kl_spike", ("kl_spike",)),
        ("grad_norm", ("grad_norm_spike",)),
        ("flat_reward", ("reward_floor",)),
        ("dead_groups", ("dead_groups",)),
        ("solved", ("solved",)),
        ("tool_failures", ("tool_failures",)),
        ("repairs", ("repairs_per_call",)),
    ],
)
def test_what_trips_a_guard_is_told_with_its_threshold(guard, fields):
    rows = table_under("guards.md", "| guard | trips when | steps | does |")
    (told,) = (when for name, when, *_ in rows if name == f"`{guard}`")

    for field in fields:
        assert re.search(rf"(?<![\d.]){getattr(GuardConfig(), field):g}(?![\d.])", told), field


@pytest.mark.torch
def test_the_table_of_arguments_for_trl_has_the_defaults_of_the_config():
    config = pytest.importorskip("adapters.trl.config", reason="needs the extra train")
    fields = {field.name: field for field in dataclasses.fields(config.StableGRPOConfig)}
    for argument, default, _ in table_under("trl.md", "| argument | default | why |"):
        field = fields[argument.strip("`")]
        made = field.default_factory() if callable(field.default_factory) else field.default
        assert default == str(made), argument


def options_of(made) -> dict[str, inspect.Parameter]:
    """The arguments that a class or a function takes, by name."""
    taken = dict(inspect.signature(made).parameters)
    taken.pop("self", None)
    return taken


def test_every_option_of_the_workflow_environments_is_told_with_its_number():
    rows = table_under("workflow-environments.md", "| option | meaning |")
    told = {name: words for names, words in rows for name in re.findall(r"`(\w+)`", names)}
    compose, operate = options_of(ComposeEnv), options_of(OperateEnv)

    assert told.keys() == compose.keys()
    assert compose.keys() - operate.keys() == {"instructions"}
    limits = [each["step_limit"].default for each in (compose, operate)]
    assert "{} in `Compose`, {} in `Operate`".format(*limits) in told["step_limit"]


def test_the_codes_of_a_workflow_that_is_refused_are_those_of_the_program():
    rows = table_under("workflow-environments.md", "| code | meaning |")

    assert [(code.strip("`"), meaning) for code, meaning in rows] == list(WORKFLOW_ERRORS.items())


def test_every_setting_of_a_sandbox_is_told():
    rows = table_under("sandbox.md", "| setting | meaning |")

    assert {name.strip("`") for name, _ in rows} == options_of(open_sandbox).keys() - {"unsafe"}


def test_every_option_of_a_synthesis_is_named_beside_the_data_sets():
    text = " ".join(TEXT["data-sets.md"].split())
    listed = re.search(r"The options are (.*?); environments take them", text)

    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == list(SynthesisOptions.model_fields)


def test_the_fitted_preset_is_worth_what_its_table_says():
    head = "| kind | data sets | `Custom` | `AnswerGenerate` | five of them, `ScEnsemble` |"
    texts = ("Custom", "AnswerGenerate", "[AnswerGenerate * 5] -> ScEnsemble", "Programmer")
    for kind, _, *percents in table_under("workflow-execution.md", f"{head} `Programmer` |"):
        found = [f"{100 * expected(text, kind, 'paper').accuracy:.1f}" for text in texts]
        assert found == percents, kind


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("one-call.md", f"At most {MAX_CALLS} calls of an action are read"),
        ("one-call.md", f"at most {MAX_MENDED:,} characters of it are mended"),
        ("sql-answers.md", f"{MAX_ROWS} rows and {MAX_CHARS:,} characters are shown"),
        ("sql-compare.md", f"gives more than {JUDGED.rows:,} rows"),
        ("sql-guard.md", f"at most {CACHE_ENTRIES:,} results and {CACHE_BYTES >> 20} MiB"),
        ("sql-guard.md", f"keeps at most {MOST_OPEN} open"),
        ("data-sets.md", f"each filled {IN_WORDS[SEEDS]} times"),
        ("synthesis.md", f"{engine.PATIENCE:,} drafts in a row give nothing new"),
        (
            "synthesis.md",
            f"At most {IN_WORDS[engine.VARIANTS]} kept tasks differ in their literals",
        ),
        ("synthesis.md", f"An answer has at most {proof.MOST_ROWS} rows"),
        ("synthesis.md", f"longer than {proof.LONGEST_CELL} characters"),
        ("synthesis.md", f"Tables of {IN_WORDS[proof.LEAST_ROWS]} rows or fewer"),
        ("synthesis.md", f"A table of up to {table_reading.READ_WHOLE:,} rows is read whole"),
        ("synthesis.md", f"From {table_reading.LARGE:,} rows on"),
        ("synthesis.md", f"The first {MOST_TABLES} tables are used"),
        ("synthesis.md", f"the first {table_reading.MOST_COLUMNS} columns of each"),
        ("rewards.md", f"{IN_WORDS[round(10 * TABLES)]} tenths of it are the share"),
        ("guards.md", f"the learning rate by {GuardConfig().lower_by:g} from now on"),
        ("guards.md", f"are the median of the first {GuardConfig().baseline_steps}."),
        ("guards.md", f"of the last {WINDOW} steps are lost"),
        ("observations.md", f"at most {MAX_CHARS:,} characters of a table"),
        ("observations.md", f"({MAX_CHARS // 2:,} of a `sample`)"),
        ("observations.md", f"at most {IN_WORDS[description.FEW_TEXTS]} texts"),
        ("observations.md", f"texts or {IN_WORDS[description.FEW_NUMBERS]} integers"),
        ("observations.md", f"at most {description.LONGEST_EXAMPLES} characters"),
        ("observations.md", f"the first {description.LOOKED_AT:,} rows of a larger table"),
        ("observations.md", f"A table of at most {description.READ_AT_A_GLANCE} rows has no"),
        ("observations.md", f"from {description.MANY_TABLES} on without their rows"),
        ("observations.md", f"places of the table, among its first {explore._SAMPLED_FROM:,}."),
        (
            "observations.md",
            f"first {LONG_VALUE} characters, or {LONG_VALUE // 2} bytes, with",
        ),
        ("sql-guard.md", f"Names, up to {schema.LONGEST_COMPARED:,} characters long"),
        ("sql-guard.md", f"`slowness` ({Limits().slowness})"),
        ("sql-guard.md", f"the clock on the wall ({Limits().seconds:g} seconds)"),
        ("sql-guard.md", f"may take {Limits().memory_bytes >> 20} MiB (`memory_bytes`)"),
        ("sql-guard.md", f"takes more than {memory.SHARE >> 20} MiB, it is the only one"),
        ("sql-guard.md", f"`heap_bytes`, {Limits().heap_bytes >> 30} GiB"),
        ("sql-guard.md", f"may have {Limits().columns} columns (`columns`)"),
        ("sql-guard.md", f"A `LIKE` or `GLOB` of {Limits().like_pattern_bytes} bytes"),
        ("sql-guard.md", f"together may have {statement_size._PATTERN_BYTES:,} bytes"),
        ("sql-guard.md", f"as one text of at most {statement_size.LONGEST:,} bytes"),
        ("sql-guard.md", f"a turn of {HALF[turnstile.PATIENCE]} a second stops nobody"),
        ("data-sets.md", f"drawn evenly for the first {Trust().episodes} episodes"),
        ("data-sets.md", f"calls are bound ({Trust().validity * 100:g} % of the turns)"),
        ("data-sets.md", f"episodes are answered ({Trust().answered * 100:g} %)"),
        ("data-sets.md", f"at least {HALF[1 - Trust().lost]} of those who have found"),
        (
            "data-sets.md",
            f"Up to {SynthesisOptions().n} tasks are written for each file",
        ),
        ("data-sets.md", f"differ in their values only: {SynthesisOptions().variants},"),
        ("data-sets.md", f"(its first {STREAMED:,} rows,"),
        ("workflow-environments.md", f"share the budget of one run: {BUDGET.calls} calls"),
        ("workflow-environments.md", f"spends all the {BUDGET.calls} calls that it may make"),
        ("workflow-environments.md", f"holds each bundled task {DRAWS} times"),
        ("workflow-language.md", "A loop has {} to {} rounds".format(*TIMES_RANGE)),
        ("workflow-language.md", "for {} to {} of them".format(*TIMES_RANGE)),
        ("backends.md", f"to {reply._DEEPEST} levels"),
        ("preflight.md", f"({options_of(audit.command)['n'].default}, or `--all`)"),
        ("guards.md", f"and after {GuardConfig().memory} steps in any case"),
        ("guards.md", f"After {IN_WORDS[GuardConfig().max_roll_backs]} roll-backs the next one"),
        ("guards.md", f"once {GuardConfig().memory} updates have been made with nothing worse"),
        ("guards.md", f"| {GuardConfig().solved:g} of the rollouts or more were right |"),
        ("guards.md", f"| {1 - GuardConfig().solved:.1g} of the rollouts or fewer were right |"),
    ],
)
def test_a_figure_in_a_sentence_is_that_of_the_program(page, sentence):
    assert sentence in " ".join(TEXT[page].split())


def test_the_page_on_language_models_says_how_long_a_reply_may_be():
    client = pytest.importorskip("toolgym.chat.bounded_http", reason="needs the extra openai")

    told = f"A reply is taken up to {client.LONGEST_BODY // 1_000_000} MB"
    assert told in " ".join(TEXT["backends.md"].split())


@pytest.mark.parametrize(
    ("file", "config"),
    [
        ("adapters/reference/config.py", "ReferenceConfig"),
        ("adapters/reference/losses.py", "LossConfig"),
        ("adapters/training/guards/config.py", "GuardConfig"),
        ("adapters/training/runs/settings.py", "TrainSettings"),
        ("adapters/trl/config.py", "StableGRPOConfig"),
        ("toolgym/rewards.py", "RewardConfig"),
    ],
)
def test_a_config_that_the_pages_point_to_explains_each_of_its_settings(file, config):
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    (body,) = [n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == config]
    silent = [
        field.target.id
        for field, after in zip(body, [*body[1:], None], strict=True)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]

    assert silent == []


@pytest.mark.parametrize(
    ("rule", "shared"),
    [
        ("sqlgym/judging/recheck.py", {"sqlgym.database.functions", "sqlgym.judging.nfc"}),
        ("aflowgym/envs/recheck.py", set()),
    ],
)
def test_a_second_rule_shares_with_the_first_no_more_than_the_page_says(rule, shared):
    tree = ast.parse((ROOT / rule).read_text("utf-8"))
    used = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named = {name for name in shared if f"`{name}`" in TEXT["preflight.md"]}

    ours = {each for each in used if each and each.partition(".")[0] in ("sqlgym", "aflowgym")}
    assert ours == shared
    assert shared == named


def test_no_page_names_a_place_on_one_machine():
    for page, text in TEXT.items():
        assert not re.search(r"/(?:tmp|root|home|work)/", text), page
