"""Progress, results and interrupts on a real terminal, in a pipe, and with nobody there."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolgym.commands.command_line import SCRIPT, environ, install, run_here
from tests.toolgym.commands.on_a_terminal import run_on_terminal
from toolgym.commands import print_json

EXPLORE = "sqlgym/Explore-v0"
COLOUR = re.compile(r"\x1b\[(?:3|4|9)\d[;\d]*m|\x1b\[[;\d]*;(?:3|4)8;")

WORKS = '''
    import time
    import typer
    from toolgym.commands import Quiet, print_json
    from toolgym.commands.progress import Bars, progress_bar
    from toolgym.long_work import report_progress, reporting

    def command(kind: str, quiet: Quiet = False) -> None:
        """Work for a moment."""
        if kind == "bar":
            with progress_bar("counting", quiet=quiet) as progress:
                for done in range(4):
                    progress(done, 3)
        if kind == "library":
            with progress_bar("outer", quiet=quiet) as progress:
                progress(1, 2)
                report_progress("inner work", 1, 3)
                time.sleep(0.3)
                report_progress("inner work", 3, 3)
                progress(2, 2)
        if kind == "whole":
            with reporting("waiting"):
                pass
        if kind == "phases":
            with Bars().phase("playing", 2) as advance:
                advance(2, "reward 0.5")
        if kind == "waits":
            with progress_bar("waiting") as progress:
                progress(1, 2)
                time.sleep(60)
        print_json({"kind": kind})
'''


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed package that adds the command `work`."""
    folder = tmp_path_factory.mktemp("works")
    return install(folder, "works", WORKS, {"toolgym.commands: work": "works:command"})


@pytest.mark.integration
def test_a_terminal_is_shown_what_is_done_how_far_it_is_and_how_long_it_took(works):
    shown = run_on_terminal("work", "bar", path=works)

    assert (shown.returncode, json.loads(shown.stdout)) == (0, {"kind": "bar"})
    assert re.search(r"counting .*3/3.*\d:\d\d:\d\d", shown.terminal)
    assert COLOUR.search(shown.terminal)
    assert shown.terminal.endswith("\x1b[?25h")  # the cursor is there again


@pytest.mark.integration
def test_long_work_of_a_library_is_a_line_beside_the_bar_of_the_command(works):
    shown = run_on_terminal("work", "library", path=works, NO_COLOR="1")

    assert re.search(r"inner work .*1/3", shown.terminal)
    last = shown.terminal.rsplit("outer", 1)[1]
    assert "2/2" in last
    assert "inner work" not in last


@pytest.mark.parametrize("kind", ["bar", "library", "whole", "phases"])
def test_in_a_pipe_there_is_no_progress(works, kind):
    done = run_here("work", kind, path=works)

    assert (json.loads(done.stdout), done.stderr) == ({"kind": kind}, "")


@pytest.mark.integration
def test_quiet_and_no_color_take_progress_and_colors_away(works):
    assert run_on_terminal("work", "bar", "--quiet", path=works).terminal == ""
    plain = run_on_terminal("work", "bar", path=works, NO_COLOR="1").terminal

    assert not COLOUR.search(plain)
    assert "3/3" in plain


@pytest.mark.integration
def test_ctrl_c_ends_a_bar_with_130_and_gives_the_cursor_back(works):
    shown = run_on_terminal("work", "waits", path=works, interrupt_at="waiting")

    assert shown.returncode == 130
    assert "\x1b[?25h" in shown.terminal
    assert shown.terminal.endswith("toolgym: interrupted.\n")


@pytest.mark.integration
def test_a_reader_that_goes_away_ends_a_command_with_141_and_no_word():
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [SCRIPT, "tasks", "show", "bundled", "observatory-001"]
    with subprocess.Popen(command, env=environ(), **pipes) as process:
        process.stdout.close()
        told = process.stderr.read()
        process.wait(timeout=600)

    assert (process.returncode, told) == (141, "")


# What was written by others.

HOSTILE = "x\x1b]0;owned\x07\x1b[2Jy\u202ez\x9b31m"


def test_a_question_with_control_characters_moves_no_cursor(tmp_path):
    tasks = tmp_path / "dev.jsonl"
    task = {"id": "t1", "question": HOSTILE, "kind": "qa", "gold": "4"}
    tasks.write_text(json.dumps(task) + "\n")

    done = run_here("tasks", "show", tasks, "t1", "--env", "aflowgym/Compose-v0", "--split", "dev")

    assert (done.returncode, done.stderr) == (0, "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)
    assert r"\x1b]0;owned" in done.stdout


def printed(value: object, encoding: str) -> str:
    """What `print_json` writes to a stdout of some encoding."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        print_json(value)
        stream.flush()
        return stream.buffer.getvalue().decode(encoding)


@settings(max_examples=40)
@given(st.text(), st.sampled_from(["utf-8", "ascii", "latin-1", "cp1252"]))
def test_any_text_comes_back_from_json_whatever_stdout_can_encode(text, encoding):
    page = printed({text: [text]}, encoding)

    assert json.loads(page) == {text: [text]}
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)


# Dashboards of evaluations.

SHOWY = """
    import json

    class Dashboard:
        def __init__(self, run):
            self.file = run.path / "showy.jsonl"

        def log(self, phase, step, numbers):
            with self.file.open("a") as file:
                file.write(json.dumps([phase, step, numbers]) + "\\\\n")

        def close(self):
            with self.file.open("a") as file:
                file.write('"closed"')
"""


def test_the_figures_of_an_evaluation_are_shown_on_a_dashboard(tmp_path):
    points = {"toolgym.dashboards: showy": "showy:Dashboard"}
    folder = install(tmp_path / "lib", "showy", SHOWY.replace("\\\\", "\\"), points)
    out = tmp_path / "run"

    done = run_here(
        "eval", EXPLORE, "--n", 2, "--out", out, "--report-to", "showy", "--json", path=folder
    )

    assert done.returncode == 0, done.stderr
    first, closed = [json.loads(line) for line in (out / "showy.jsonl").read_text().splitlines()]
    assert closed == "closed"
    assert first[:2] == ["bundled_dev", 0]
    assert first[2]["accuracy"] == json.loads(done.stdout)["accuracy"]
