"""The shell around the commands: finding them, their help, and what an error becomes."""

import json
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import (
    SCRIPT,
    environ,
    install,
    names_torch_free,
    on_path,
    python,
    run,
    run_here,
)
from tools.make_docs import PAGES, ROOT, our_commands

STRANGER = '''
    import time
    import typer
    from toolgym.errors import ConfigurationError, EnvironmentFault, TaskRefused

    ERRORS = {
        "configuration": ConfigurationError("weight out of range; lower it."),
        "refused": TaskRefused("t1", "empty_gold", "its gold is empty."),
        "fault": EnvironmentFault("the disk is full.", "Make room."),
        "unforeseen": RuntimeError("nobody foresaw this"),
        "interrupt": KeyboardInterrupt(),
        "parameter": typer.BadParameter("this is no name"),
    }

    def command(kind: str):
        """Fail in a way of your choice."""
        if kind == "wait":
            print("ready", flush=True)
            time.sleep(60)
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


def test_the_help_imports_no_training_library():
    code = """
        import atexit, sys
        atexit.register(lambda: print(*sys.modules))
        from toolgym.cli import main
        main(["--help"])
    """
    shown = python(code)

    assert "toolgym.commands.evaluate" in shown.stdout.split()
    assert names_torch_free(shown.stdout)


def test_the_version_is_that_of_the_distribution_and_needs_no_command(broken):
    shown = run_here("--version", path=broken)

    assert (shown.stdout, shown.stderr) == (f"toolgym {version('toolgym')}\n", "")


def test_a_command_of_another_package_is_found(stranger):
    assert "Fail in a way of your choice." in run_here("--help", path=stranger).stdout
    assert "all is well" in run_here("fail", "not", path=stranger).stdout


def test_a_command_of_a_group_has_the_same_boundary_as_one_that_stands_alone(tmp_path):
    module = '''
        import typer
        from toolgym.errors import EnvironmentFault

        command = typer.Typer(help="A group of a stranger.")

        @command.command("fall")
        def fall() -> None:
            """Fail."""
            raise EnvironmentFault("the disk is full.", "Make room.")
    '''
    place = install(tmp_path, "grouped", module, {"toolgym.commands: group": "grouped:command"})
    done = run_here("group", "fall", path=place)

    assert (done.returncode, done.stderr) == (1, "toolgym: the disk is full. Make room.\n")
    assert "A group of a stranger." in run_here("--help", path=place).stdout


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
            "Set TOOLGYM_TRACEBACK=1 to see where.",
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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fial", "x"], "did you mean fail?"),
        (["fail"], "kind"),
        (["fail", "x", "--quickly"], "--quickly"),
        (["fail", "parameter"], "this is no name"),
    ],
)
def test_wrong_use_is_told_with_status_2(stranger, arguments, told):
    done = run_here(*arguments, path=stranger)

    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.integration
def test_a_signal_ends_a_command_with_130_and_a_short_line(stranger):
    command = [SCRIPT, "fail", "wait"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environ(stranger), **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=600)[1]

    assert process.returncode == 130
    assert told == "toolgym: interrupted.\n"


def test_a_broken_command_is_left_out_with_one_line(broken):
    done = run_here("--help", path=broken)

    lines = [line for line in done.stderr.splitlines() if "crash" in line]
    assert done.returncode == 0
    assert "crash" not in done.stdout
    assert lines == [
        "toolgym: the entry point 'crash' of broken 9.9 (broken:command) cannot be loaded:"
        " RuntimeError: its import fails. See `toolgym doctor`."
    ]


def test_a_broken_command_that_is_wanted_is_a_failure_and_disturbs_no_other(broken):
    done = run_here("crash", path=broken)

    assert done.returncode == 1
    assert "its import fails" in done.stderr
    assert "Traceback" not in done.stderr
    assert run_here("envs", path=broken).stderr == ""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--version"], 0, f"toolgym {version('toolgym')}\n"),
        (["fail", "unforeseen"], 1, "toolgym: failed: RuntimeError: nobody foresaw this\nSet"),
        (["envs", "sqlgym/Exploar-v0"], 2, "Did you mean: `Explore`?"),
    ],
    ids=["0", "1", "2"],
)
def test_a_process_ends_with_the_status_and_no_traceback(stranger, arguments, status, told):
    done = run(*arguments, path=stranger)

    assert done.returncode == status
    assert told in (done.stderr if status else done.stdout)
    assert "Traceback" not in done.stderr


@pytest.mark.integration
def test_the_package_can_be_run_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "toolgym", "--version"],
        capture_output=True,
        text=True,
        env=environ(),
        timeout=600,
    )

    assert (done.returncode, done.stdout) == (0, f"toolgym {version('toolgym')}\n")


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
        ("mygym/Locks-v0", "give MODULE:ID, as in mygym:mygym/Locks-v0."),
        ("mygym:Locks", "The module 'mygym' registers mygym/Locks-v0."),
        ("mygym.py:mygym/Locks-v0", "Name it as in `import mygym`"),
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


def test_an_option_that_an_own_environment_lacks_is_answered_with_its_options(own_module):
    with on_path(Path.cwd()):
        done = run_here("eval", own_module, "--split", "dev")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"toolgym: {own_module} has no argument 'split'; leave it out."
        " Its arguments: step_limit, parsing, rewards, render_mode.\n"
    )


def test_a_missing_environment_is_answered_with_those_there_are():
    done = run_here("play")

    assert done.returncode == 2
    assert "missing argument 'ENV_ID'. Environments: aflowgym/Compose-v0, " in done.stderr


def test_an_abbreviated_option_is_answered_with_the_option_and_a_strange_one_with_none():
    assert "--eval-n; did you mean --eval-tasks" in run_here("train", "--eval-n", "1").stderr
    assert "--split?" in run_here("tasks", "stats", "--splt", "dev").stderr
    assert "no such option: --zebra. See" in run_here("tasks", "stats", "--zebra").stderr


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
