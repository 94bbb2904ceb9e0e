"""The contract of every command and sub-command: examples, `--json`, options, mistakes.

What `--json` prints is compared with the table in docs/terminal.md, so a key that is renamed or
left out there fails here.
"""

import inspect
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.toolgym.commands.command_line import run_here
from toolgym import cli
from tools.make_docs import ROOT, our_commands

PAGE = (ROOT / "docs" / "terminal.md").read_text(encoding="utf-8")
EXPLORE = "sqlgym/Explore-v0"


def leaves() -> dict[str, Any]:
    """Every command that does something, by its words."""
    found = {}
    for name in our_commands():
        command = typer.main.get_command(cli.application(name)).commands[name]
        inside = getattr(command, "commands", None)
        found |= {f"{name} {each}": part for each, part in inside.items()} if inside else {}
        found |= {} if inside else {name: command}
    return found


LEAVES = leaves()


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def examples_of(command: Any) -> list[str]:
    """The lines under `Example:` in a help text."""
    block = re.search(r"^Examples?:\n((?:[ \t]+\S.*\n?)+)", command.help or "", re.M)
    return [line.strip() for line in block[1].splitlines()] if block else []


EXAMPLES = [(words, line) for words, command in LEAVES.items() for line in examples_of(command)]


def test_there_are_commands_to_be_held_to_this():
    assert {"eval", "tasks check", "export rows", "train", "models list"} <= LEAVES.keys()


@pytest.mark.parametrize("words", LEAVES)
def test_every_command_says_in_a_sentence_what_it_does_and_shows_examples(words):
    text = LEAVES[words].help

    assert re.match(r"[A-Z][^\n]*\.(\n|$)", text)
    assert [line for line in examples_of(LEAVES[words]) if line.startswith(f"toolgym {words}")]


@pytest.mark.parametrize(("words", "line"), EXAMPLES)
def test_every_example_can_be_parsed(words, line):
    given = shlex.split(line)[1:]
    name = next((each for each in LEAVES if given[: len(each.split())] == each.split()), None)
    assert name is not None, f"{line} is of no command"
    context = LEAVES[name].make_context(name, given[len(name.split()) :])

    assert context.args == []


@pytest.mark.parametrize("words", LEAVES)
def test_every_option_and_argument_has_a_help_text(words):
    assert [each.name for each in LEAVES[words].params if not getattr(each, "help", None)] == []


@pytest.mark.parametrize("words", LEAVES)
def test_a_misspelt_option_is_answered_with_the_nearest_and_status_2(words):
    options = {each for each in options_of(LEAVES[words]) if each.startswith("--")}
    option = max({*options, "--help"}, key=len)
    wrong = option.replace(option[4], "", 1)

    done = run_here(*words.split(), wrong)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"toolgym: no such option: {wrong}; did you mean ")
    assert option in done.stderr
    assert done.stderr.endswith(f"? See toolgym {words} --help.\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--quiet", "--ray"])
def test_an_option_of_many_commands_means_the_same_in_all(option):
    helps = {
        parameter.help
        for command in LEAVES.values()
        for parameter in command.params
        if option in parameter.opts
    }

    assert len(helps) == 1


def test_a_number_of_tasks_is_asked_for_in_the_same_way_everywhere():
    opts = [each.opts for command in LEAVES.values() for each in command.params if each.name == "n"]

    assert opts == [["--n", "-n"]] * len(opts)
    assert len(opts) > 5


@pytest.mark.parametrize("words", LEAVES)
def test_what_shows_progress_can_be_told_to_be_quiet(words):
    module = inspect.getsource(sys.modules[inspect.unwrap(LEAVES[words].callback).__module__])
    shows = "progress_bar(" in module or "Bars()" in module

    assert not shows or "--quiet" in options_of(LEAVES[words])


# What `--json` prints.


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """By command, the keys that are always there, and those that may be, from the page."""
    rows = re.findall(r"^\| `toolgym ([^`]+)` \| ([^|]+) \|", PAGE, re.M)
    told = {}
    for words, keys in rows:
        perhaps = set(re.findall(r"\(`([^`]+)`\)", keys))
        told[words] = (set(re.findall(r"`([^`]+)`", keys)) - perhaps, perhaps)
    return told


DOCUMENTED = documented()


def test_every_command_with_json_is_on_the_page_and_no_other():
    with_json = {words for words, command in LEAVES.items() if "--json" in options_of(command)}

    # The words of a command are small: `eval --merge` and `envs ENV_ID` are uses of one.
    assert {re.sub(r" (--|[A-Z]).*", "", each) for each in DOCUMENTED} == with_json


@pytest.mark.parametrize("words", LEAVES)
def test_a_command_that_prints_a_table_has_json(words):
    module = sys.modules[inspect.unwrap(LEAVES[words].callback).__module__]
    prints_tables = "print_table(" in inspect.getsource(module)

    assert not prints_tables or "--json" in options_of(LEAVES[words])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two evaluations, a file of one, and an invented database."""
    folder = tmp_path_factory.mktemp("json")
    for policy in ("expert", "random"):
        out = folder / "runs" / policy
        run_here("eval", EXPLORE, "--n", 2, "--policy", policy, "--out", out, "--quiet")
    run_here("eval", EXPLORE, "--n", 2, "--k", 2, "--policy", "random", "--out", folder / "a.jsonl")
    run_here("eval", "aflowgym/Compose-v0", "--n", 2, "--out", folder / "runs" / "compose")
    run_here("tasks", "invent", "--n", 1, "--out", folder / "invented")
    return folder


RUNS = {
    "doctor": "doctor",
    "envs": "envs",
    "envs ENV_ID": f"envs {EXPLORE}",
    "eval": f"eval {EXPLORE} --n 2 --k 2 --policy random --transcripts 1",
    "eval --merge": f"eval {EXPLORE} --merge a.jsonl",
    "eval --compare": f"eval {EXPLORE} --compare runs/expert runs/random",
    "stats": "stats runs/compose",
    "audit": "audit runs/expert",
    "tasks check": "tasks check bundled",
    "tasks stats": "tasks stats bundled --split dev",
    "tasks show": "tasks show bundled observatory-001",
    "tasks invent": "tasks invent --n 1 --out again",
    "tasks synth": "tasks synth invented --n 3 --out tasks",
    "export rows": f"export rows {EXPLORE} --n 2 --format jsonl --out rows",
    "export demonstrations": f"export demonstrations {EXPLORE} --n 1 --format jsonl --out shown",
    "export rollouts": "export rollouts runs/expert --format jsonl --out rollouts",
    "export openenv": "export openenv openenv_folder",
    "export verifiers": f"export verifiers {EXPLORE} --out package",
    "models list": "models list",
}
"""A command line for each that needs no PyTorch; the page calls them by these names."""


@pytest.mark.parametrize("name", RUNS)
def test_json_is_one_document_with_the_keys_of_the_page(name, place, monkeypatch):
    monkeypatch.chdir(place)
    always, perhaps = DOCUMENTED[name]

    done = run_here(*RUNS[name].split(), "--json")

    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    entry = value[0] if isinstance(value, list) else value
    assert always <= entry.keys() <= always | perhaps


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param("lab --list", "lab --list", marks=pytest.mark.slow),
        pytest.param(
            *("lab --plan", "lab post-episode --smoke --plan --jobs 1"), marks=pytest.mark.slow
        ),
        ("train --show-settings", f"train {EXPLORE} --show-settings"),
    ],
)
def test_json_of_what_needs_the_extra_has_the_keys_of_the_page(name, line):
    pytest.importorskip("torch", reason="needs the extra `train`")
    always, perhaps = DOCUMENTED[name]

    done = run_here(*line.split(), "--json")

    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    entry = value[0] if isinstance(value, list) else value
    if name == "train --show-settings":
        entry = entry["seed"]
    assert always <= entry.keys() <= always | perhaps


def test_the_exit_statuses_are_those_of_the_page():
    told = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.M)}

    assert told == {cli.SUCCESS, cli.FAILURE, cli.MISUSE, cli.INTERRUPTED, cli.READER_LEFT}
