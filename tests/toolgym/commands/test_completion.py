"""Shell completion, as shells ask for it, and by the functions that they are given."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import SCRIPT, environ, install, run_here
from toolgym.plugins import COMMANDS, find_plugins

ENVIRONMENTS = [
    "aflowgym/Compose-v0",
    "aflowgym/Operate-v0",
    "sqlgym/Explore-v0",
    "sqlgym/TextToSQL-v0",
]
PATH = f"{Path(SCRIPT).parent}{os.pathsep}{os.environ['PATH']}"


def complete(line: str, **more: object) -> list[str]:
    """What bash is offered at the end of a line, in this process."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = run_here(_TOOLGYM_COMPLETE="complete_bash", **asked, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def test_the_commands_are_offered():
    assert sorted(complete("toolgym ")) == list(find_plugins(COMMANDS))
    assert complete("toolgym ev") == ["eval"]
    assert complete("toolgym tasks s") == ["stats", "show", "synth"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("toolgym eval ", ENVIRONMENTS),
        ("toolgym play sqlgym/T", ["sqlgym/TextToSQL-v0"]),
        ("toolgym eval sqlgym/Explore-v0 --po", ["--policy", "--policy-set"]),
        ("toolgym tasks check --env aflowgym/C", ["aflowgym/Compose-v0"]),
    ],
)
def test_environments_and_options_are_offered(line, offered):
    ours = [word for word in complete(line) if word.startswith(("sqlgym", "aflowgym", "--"))]
    assert ours == offered


def test_a_broken_package_is_no_disturbance(tmp_path):
    module = "raise RuntimeError('its import fails')"
    points = {
        "toolgym.commands: crash": "broken:command",
        "toolgym.environments: broken": "broken",
    }
    folder = install(tmp_path, "broken", module, points)

    assert "eval" in complete("toolgym ", path=folder)
    assert set(ENVIRONMENTS) <= set(complete("toolgym eval ", path=folder))


@pytest.mark.nightly
def test_zsh_and_fish_are_told_what_a_command_does():
    asked = {"_TOOLGYM_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "toolgym ta"}
    zsh = run_here(**asked).stdout
    asked |= {"_TOOLGYM_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    fish = run_here(**asked).stdout

    assert zsh.startswith('_arguments \'*: :(("tasks":"Check, count and show the tasks')
    assert fish.startswith("tasks\tCheck, count and show the tasks")


@pytest.mark.integration
def test_completing_imports_no_training_library_and_no_parser_of_sql():
    code = (
        "import atexit, os, sys;"
        "os.environ |= {'_TOOLGYM_COMPLETE': 'complete_bash', 'COMP_CWORD': '2',"
        " 'COMP_WORDS': 'toolgym train sq'};"
        "atexit.register(lambda: sys.__stdout__.write(' '.join(sys.modules)));"
        "from toolgym.cli import main; main()"
    )
    command = [shutil.which("python", path=PATH) or "python", "-c", code]
    shown = subprocess.run(command, env=environ(), capture_output=True, text=True, timeout=600)

    modules = set(shown.stdout.split())
    assert "adapters.commands.train" in modules
    assert modules & {"torch", "transformers", "trl", "sqlglot"} == set()


# Real shells.

LINES = ("toolgym eval sql", "toolgym stats runs/explore-001 --ph")
OFFERED = [ENVIRONMENTS[2:], ["--phase"]]

BASH = """
    source completion.sh
    for line in "$@"; do
        COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _toolgym_completion toolgym
        printf '%s;' "${COMPREPLY[@]}"; echo
    done
"""
ZSH = """
    compdef() { : }
    _arguments() { print -rn -- "$*"; echo }
    source completion.sh
    for line in "$@"; do
        words=(${=line}); CURRENT=$#words
        _toolgym_completion
    done
"""
FISH = """
    source completion.sh
    for line in $argv
        complete -C $line | string replace -r '\\t.*' '' | string join ';'
    end
"""


def asked(shell: list[str], place: Path, code: str) -> list[str]:
    """What a shell prints that was given its script and is asked for the end of each line."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    script = subprocess.run(
        [SCRIPT],
        env=environ(_TOOLGYM_COMPLETE=f"source_{shell[0]}"),
        capture_output=True,
        text=True,
        timeout=600,
    )
    (place / "completion.sh").write_text(script.stdout)
    done = subprocess.run(
        [*shell, code, *(["-"] if shell[0] != "fish" else []), *LINES],
        env=environ(PATH=PATH, HOME=str(place)),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.integration
def test_bash_completes_by_its_script(tmp_path):
    shown = asked(["bash", "--norc", "-c"], tmp_path, BASH)

    assert [line.strip(";").split(";") for line in shown] == OFFERED


@pytest.mark.nightly
def test_zsh_completes_by_its_script(tmp_path):
    shown = asked(["zsh", "-f", "-c"], tmp_path, ZSH)

    assert all(word in line for words, line in zip(OFFERED, shown, strict=True) for word in words)


@pytest.mark.nightly
def test_fish_completes_by_its_script(tmp_path):
    shown = asked(["fish", "--no-config", "-c"], tmp_path, FISH)

    assert [line.split(";") for line in shown] == OFFERED


@pytest.mark.integration
def test_completion_is_installed_for_the_shell_that_asks(tmp_path):
    done = subprocess.run(
        ["bash", "--norc", "-c", "toolgym --install-completion; echo $?"],
        env=environ(PATH=PATH, HOME=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.stdout.endswith("\n0\n"), done.stderr
    script = tmp_path / ".bash_completions" / "toolgym.sh"
    assert "_TOOLGYM_COMPLETE=complete_bash" in script.read_text()
    assert f"source '{script}'" in (tmp_path / ".bashrc").read_text()
