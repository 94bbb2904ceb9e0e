"""Shell completion, as shells ask for it."""

import shlex

import pytest

from tests.toolgym.commands.command_line import run_here
from toolgym.plugins import COMMANDS, find_plugins

ENVIRONMENTS = [
    "aflowgym/Compose-v0",
    "aflowgym/Operate-v0",
    "sqlgym/Explore-v0",
    "sqlgym/TextToSQL-v0",
]


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
