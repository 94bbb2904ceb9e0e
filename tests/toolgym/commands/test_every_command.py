"""The contract of every command and sub-command: examples, `--json`, options, mistakes.

The keys of `--json` are compared with `JSON_KEYS` of tools/make_docs.py, which docs/cli.md prints.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.toolgym.commands.command_line import run_here
from toolgym import cli
from tools.make_docs import INTRO, JSON_KEYS, our_commands, split_keys

EXPLORE = "sqlgym/Explore-v0"


@pytest.fixture(scope="module")
def leaves() -> dict[str, Any]:
    """Every command that does something, by its words."""
    found = {}
    app = typer.main.get_command(cli.application())
    for name in our_commands():
        command = app.get_command(typer.Context(app), name)
        inside = getattr(command, "commands", None)
        found |= {f"{name} {each}": part for each, part in inside.items()} if inside else {}
        found |= {} if inside else {name: command}
    return found


def options_of(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def examples_of(command: Any) -> list[str]:
    """The lines under `Example:` in a help text."""
    block = re.search(r"^Examples?:\n((?:[ \t]+\S.*\n?)+)", command.help or "", re.M)
    return [line.strip() for line in block[1].splitlines()] if block else []


def test_every_command_has_a_help_text_examples_and_a_help_for_each_option(leaves):
    assert {"eval", "tasks check", "export rows", "train", "models list"} <= leaves.keys()
    for words, command in leaves.items():
        assert re.match(r"[A-Z]", command.help), words
        assert any(line.startswith(f"toolgym {words}") for line in examples_of(command)), words
        without = [each.name for each in command.params if not getattr(each, "help", None)]
        assert without == [], words


def test_every_example_can_be_parsed(leaves):
    for line in (line for command in leaves.values() for line in examples_of(command)):
        given = shlex.split(line)[1:]
        name = next((each for each in leaves if given[: len(each.split())] == each.split()), None)
        assert name is not None, f"{line} is of no command"
        context = leaves[name].make_context(name, given[len(name.split()) :])

        assert context.args == []


ELSEWHERE = ("--ray", "--report-to", "--workers", "/checkpoints/")
"""Examples with these need more than the base install, or are run by tests of their own."""


@pytest.mark.integration
def test_every_example_of_the_core_works_as_printed(leaves, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    core = ("doctor", "envs", "eval", "merge", "play")
    lines = [line for name in core for line in examples_of(leaves[name])]

    # Some of them read what an earlier one wrote.
    for line in (line for line in lines if not any(each in line for each in ELSEWHERE)):
        done = run_here(*shlex.split(line)[1:])
        assert done.returncode == 0, line + done.stdout + done.stderr


def test_a_misspelt_option_is_answered_with_the_nearest_and_status_2():
    done = run_here("tasks", "check", "--shwo", "1")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "toolgym: no such option: --shwo; did you mean --show? See toolgym tasks check --help.\n"
    )


# What `--json` prints.


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """By command, the keys that are always there, and those that may be."""
    told = {}
    for words, keys in JSON_KEYS.items():
        perhaps = {key for key in split_keys(keys) if key.startswith("(")}
        told[words] = ({*split_keys(keys)} - perhaps, {key[1:-1] for key in perhaps})
    return told


DOCUMENTED = documented()


def test_every_command_with_json_is_on_the_page_and_no_other(leaves):
    with_json = {words for words, command in leaves.items() if "--json" in options_of(command)}

    # The words of a command are small: `envs ENV_ID` is a use of one.
    assert {re.sub(r" (--|[A-Z]).*", "", each) for each in DOCUMENTED} == with_json


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two evaluations, a file of one, and an invented database."""
    folder = tmp_path_factory.mktemp("json")
    for policy in ("expert", "random"):
        out = folder / "runs" / policy
        run_here("eval", EXPLORE, "--n", 2, "--policy", policy, "--out", out, "--quiet")
    run_here("eval", EXPLORE, "--n", 2, "--k", 2, "--policy", "random", "--out", folder / "a.jsonl")
    run_here("eval", "aflowgym/Compose-v0", "--n", 1, "--out", folder / "runs" / "compose")
    run_here("tasks", "invent", "--n", 1, "--out", folder / "invented")
    return folder


RUNS = {
    "doctor": "doctor",
    "envs": "envs",
    "envs ENV_ID": f"envs {EXPLORE}",
    "eval": f"eval {EXPLORE} --n 2 --k 2 --policy random --transcripts 1",
    "merge": "merge a.jsonl",
    "compare": "compare runs/expert runs/random",
    "stats": "stats runs/compose",
    "audit": "audit runs/expert",
    "tasks check": 'tasks check invented --set synthesis={"n":4}',
    "tasks stats": 'tasks stats invented --set synthesis={"n":4}',
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
PAGES = ("compare", "doctor", "eval", "stats", "tasks show")
"""Those whose page for people is made, too."""


@pytest.mark.parametrize("name", RUNS)
def test_json_is_one_document_with_the_keys_of_the_page(name, place, monkeypatch):
    monkeypatch.chdir(place)
    always, perhaps = DOCUMENTED[name]

    done = run_here(*RUNS[name].split(), "--json")

    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    entry = value[0] if isinstance(value, list) else value
    assert always <= entry.keys() <= always | perhaps
    if name in PAGES:
        page = run_here(*RUNS[name].split())
        assert (page.returncode, len(page.stdout) > 40) == (0, True), page.stderr


def test_the_exit_statuses_are_those_of_the_page():
    told = {int(number) for number in re.findall(r"^\| (\d+) \|", INTRO, re.M)}

    assert told == {cli.SUCCESS, cli.FAILURE, cli.MISUSE, cli.INTERRUPTED, cli.OUTPUT_CLOSED}
