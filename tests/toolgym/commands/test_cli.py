"""The shell around the commands: finding them, their help, and what an error becomes."""

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import (
    install,
    on_path,
    run,
    run_here,
)
from tools.make_docs import PAGES, ROOT, our_commands

STRANGER = '''
    from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused

    ERRORS = {
        "configuration": ConfigurationError("weight out of range; lower it."),
        "refused": TaskRefused("t1", "empty_gold", "its gold is empty."),
        "fault": EnvironmentFault("the disk is full.", "Make room."),
        "unforeseen": RuntimeError("nobody foresaw this"),
        "interrupt": KeyboardInterrupt(),
    }

    def command(kind: str):
        """Fail in a way of your choice."""
        if kind in ERRORS:
            raise ERRORS[kind]
        print("no such way, so all is well")
'''


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A folder with an installed package that adds the command `fail`."""
    return install(tmp_path, "stranger", STRANGER, {"toolgym.commands: fail": "stranger:command"})


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder with an installed package whose command cannot be imported."""
    module = "raise RuntimeError('its import fails')"
    return install(tmp_path, "broken", module, {"toolgym.commands: crash": "broken:command"})


def test_the_help_lists_every_command():
    shown = run_here("--help")

    assert shown.returncode == 0
    assert set(our_commands()) <= set(re.findall(r"^  (\w+) +[A-Z]", shown.stdout, re.M))


def test_the_version_is_that_of_the_distribution_and_needs_no_command(broken):
    shown = run_here("--version", path=broken)

    assert (shown.stdout, shown.stderr) == (f"toolgym {version('toolgym')}\n", "")


def test_a_command_of_another_package_is_found(stranger):
    assert "Fail in a way of your choice." in run_here("--help", path=stranger).stdout
    assert "all is well" in run_here("fail", "not", path=stranger).stdout


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("configuration", 2, "toolgym: weight out of range; lower it."),
        ("refused", 2, "toolgym: task 't1' is refused [empty_gold]: its gold is empty."),
        ("fault", 1, "toolgym: the disk is full. Make room."),
        (
            "unforeseen",
            1,
            "toolgym: failed: RuntimeError: nobody foresaw this\n"
            "Set TOOLGYM_TRACEBACK=1 to print the traceback.",
        ),
        ("interrupt", 130, "toolgym: interrupted."),
    ],
)
def test_an_error_becomes_a_sentence_and_an_exit_status(stranger, kind, status, told):
    done = run_here("fail", kind, path=stranger)

    assert (done.returncode, done.stdout, done.stderr) == (status, "", told + "\n")


def test_a_traceback_is_shown_where_it_is_asked_for(stranger):
    done = run_here("fail", "unforeseen", path=stranger, TOOLGYM_TRACEBACK="1")

    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr


def test_a_broken_command_that_is_wanted_is_a_failure_and_disturbs_no_other(broken):
    done = run_here("crash", path=broken)

    assert done.returncode == 1
    assert "its import fails" in done.stderr
    assert "Traceback" not in done.stderr
    assert run_here("envs", path=broken).stderr == ""


LOCKS = (ROOT / "docs" / "own-environment.md").read_text("utf-8").split("```python\n")[1]


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of an environment in `mygym.py` in the current folder."""
    (tmp_path / "mygym.py").write_text(LOCKS.partition("```")[0])
    monkeypatch.chdir(tmp_path)
    return "mygym:mygym/Locks-v0"


@pytest.mark.integration
def test_an_environment_in_a_module_of_the_current_folder_is_played_by_module_and_id(own_module):
    def toolgym(*arguments: str) -> str:
        with on_path(Path.cwd()):
            done = run_here(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    done = run("eval", own_module, "--json", "--out", "runs/x")  # the console script itself
    assert (json.loads(done.stdout)["accuracy"], done.returncode) == (1, 0)
    assert f'"env_id": "{own_module}"' in Path("runs/x/config.json").read_text()
    assert "Turn the dial" in toolgym("envs", own_module)
    assert "playable: 10" in toolgym("tasks", "check", "--env", own_module)
    assert "question: Open it." in toolgym("tasks", "show", "safe-3", "--env", own_module)
    assert "10 train" in toolgym("export", "rows", own_module, "--out", "rows", "--format", "jsonl")
    assert Path(toolgym("report", "runs/x").strip()).is_file()


@pytest.mark.parametrize(
    ("env_id", "told"),
    [
        ("mygym/Safes-v0", "use MODULE:ID, as in mygym:mygym/"),
        ("mygym:Locks", "The module 'mygym' registers mygym/Locks-v0."),
        ("nomodule:mygym/Locks-v0", "No module named 'nomodule'"),
        ("broken:mygym/Locks-v0", "'broken' cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_wrong_id_of_an_own_environment_is_answered_with_the_form(own_module, env_id, told):
    Path("broken.py").write_text("1 / 0")

    with on_path(Path.cwd()):
        done = run_here("eval", env_id)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert told in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "docs/call-formats.md",
        pytest.param("docs/cli.md", marks=pytest.mark.integration),
        pytest.param("docs/reference.md", marks=pytest.mark.integration),
        pytest.param("docs/architecture.md", marks=pytest.mark.nightly),
    ],
)
def test_a_generated_page_is_what_the_program_says(name):
    made = PAGES[name]()

    assert (ROOT / name).read_text(encoding="utf-8") == made, "run: python tools/make_docs.py"
