"""The shell around the commands: finding them, their help, and what an error becomes."""

import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tests.toolgym.commands.command_line import (
    SCRIPT,
    environ,
    install,
    names_torch_free,
    python,
    run,
    run_here,
)
from toolgym.cli import help_text, told_in_sentences
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


def greet(
    context: typer.Context,
    name: str,
    count: int = 3,
    loud: bool = False,
    out: "Path | None" = None,
    level: Annotated[int, typer.Option("--lev", help="Its own help.")] = 1,
    kind: Annotated[str, typer.Argument(metavar="KIND")] = "a",
    weight=5,
    old: str = typer.Option("x", "--old-name"),
) -> None:
    """Greet somebody.

    Args:
        context: Where it runs.
        name: Who is greeted, by a name
            that may go on.
        count (int): How often: at least once.
        loud: In capitals.

        out: Where to.
        level: Not this.
        kind: Of greeting.
        weight: Of the voice.
        old: As before.
        nobody: No parameter.

    Example:
        toolgym greet Bob
    """
    typer.echo(repr((name, count, loud, out, level, kind, weight, old)))


def shown_by(function, *arguments):
    """What a command prints that is made of a function as those of entry points are."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command("greet", help=help_text(function))(told_in_sentences(function))
    done = CliRunner().invoke(app, [*arguments], terminal_width=80)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_args_of_a_docstring_are_the_help_of_options_and_arguments():
    page = shown_by(greet, "--help")

    told = dict(re.findall(r"^  (\S+) .*?  ([A-Z].*?)(?:  \[.*)?$", page, re.M))
    assert told == {
        "name": "Who is greeted, by a name that may go on.",
        "KIND": "Of greeting.",
        "--count": "How often: at least once.",
        "--loud": "In capitals.",
        "--out": "Where to.",
        "--lev": "Its own help.",
        "--weight": "Of the voice.",
        "--old-name": "As before.",
        "--help": "Show this message and exit.",
    }
    assert "  Greet somebody.\n\n  Example:\n      toolgym greet Bob\n" in page
    assert "Args:" not in page
    assert "No parameter" not in page


def test_a_command_with_args_in_its_docstring_takes_what_it_took():
    options = ["--count", "2", "--loud", "--lev", "4", "--weight", "7", "--old-name", "z"]

    assert shown_by(greet, "Bob") == "('Bob', 3, False, None, 1, 'a', 5, 'x')\n"
    assert shown_by(greet, "Bob", "b", *options) == "('Bob', 2, True, None, 4, 'b', 7, 'z')\n"


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
            "toolgym failed: RuntimeError: nobody foresaw this\n"
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
        (["fial", "x"], "Did you mean 'fail'?"),
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
        "toolgym: the command 'crash' of broken 9.9 (broken:command) cannot be loaded:"
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
        (["fail", "unforeseen"], 1, "toolgym failed: RuntimeError: nobody foresaw this\nSet"),
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
