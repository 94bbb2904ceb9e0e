"""The adapters to other frameworks: what each needs is pinned, and found only where it is meant."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import adapter_tests
from tools.adapter_tests import (
    FAILED,
    PASSED,
    SKIPPED,
    Clock,
    OutOfTime,
    adapters,
    asked_for,
    extra,
    pins,
    run_apart,
    stamp,
)

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
DEMANDED = {
    "inspect_ai": {"fsspec", "python-dateutil"},
    "openenv": {"pillow"},  # by gradio
    "verifiers": {"openai"},
}
"""Where a framework excludes the version of the base; what is no longer so fails too."""


def test_there_is_an_adapter() -> None:
    assert {"mcp", "openenv"} <= set(adapters())


@pytest.mark.parametrize("name", adapters())
def test_an_adapter_has_code_tests_an_extra_and_pins_for_all_that_it_names(name: str) -> None:
    assert (ROOT / "adapters" / name / "__init__.py").is_file()
    assert [*(ROOT / "tests" / "adapters" / name).glob("test_*.py")]
    assert extra(name) in EXTRAS
    assert set(asked_for(name)) | set(adapter_tests.TEST_PACKAGES) <= pins(name).keys()


@pytest.mark.parametrize("name", adapters())
def test_pins_are_plain_and_name_no_place(name: str) -> None:
    lines = (ROOT / "constraints" / f"{name}.txt").read_text("utf-8").splitlines()

    for line in lines:
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


@pytest.mark.parametrize("name", adapters())
def test_what_the_base_has_too_has_the_same_version(name: str) -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    base = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))

    other = {k for k, v in pins(name).items() if base.get(k, v) != v}

    assert other == DEMANDED.get(name, set())


@pytest.mark.parametrize("name", adapters())
def test_importing_an_adapter_needs_nothing_of_its_extra(name: str) -> None:
    code = f"import sys, adapters.{name}; print('{name}' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_an_environment_is_made_anew_when_its_pins_change(tmp_path: Path) -> None:
    (tmp_path / "constraints").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    pinned = tmp_path / "constraints" / "x.txt"
    pinned.write_text("x==1\n")
    before = stamp("x", tmp_path)

    assert stamp("x", tmp_path) == before
    pinned.write_text("x==2\n")
    assert stamp("x", tmp_path) != before


@pytest.mark.parametrize(
    ("state", "why", "status"),
    [
        (PASSED, "", 0),
        (SKIPPED, "the package index does not offer x==1, or cannot be reached", 0),
        (FAILED, "pytest ended with 1", 1),
    ],
)
def test_each_adapter_is_told_with_the_reason(
    state: str,
    why: str,
    status: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adapter_tests, "check", lambda name, options, clock, alone: (state, why))

    assert adapter_tests.main(["mcp"]) == status
    assert capsys.readouterr().out.splitlines()[-1] == f"mcp: {state}" + (f", {why}" if why else "")


def test_two_at_a_time_are_told_in_the_order_asked_for_and_each_in_one_piece(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys, time\nfor n in range(3): print(sys.argv[1], n, flush=True); time.sleep(.05)"

    def check(name: str, options: list[str], clock: Clock, alone: bool) -> tuple[str, str]:
        assert not alone
        status = run_apart(name, [sys.executable, "-c", code, name], clock)
        return (FAILED if status else PASSED), ""

    monkeypatch.setattr(adapter_tests, "check", check)

    assert adapter_tests.main(["--jobs", "2", "openenv", "mcp"]) == 0
    printed = capsys.readouterr().out
    for name in ("openenv", "mcp"):
        assert f"== {name} printed:\n{name} 0\n{name} 1\n{name} 2\n" in printed
    assert printed.splitlines()[-2:] == ["openenv: passed", "mcp: passed"]


def test_what_was_printed_is_shown_where_the_time_ran_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = "import time; print('begun', flush=True); time.sleep(60)"

    with pytest.raises(OutOfTime, match="was spent"):
        run_apart("mcp", [sys.executable, "-c", code], Clock(minutes=0.02))

    assert "== mcp printed:\nbegun\n" in capsys.readouterr().out


def test_no_job_at_all_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert adapter_tests.main(["--jobs", "0", "mcp"]) == 2
    assert capsys.readouterr().err == "--jobs is 0; it must be 1 or more.\n"


def test_an_unknown_adapter_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert adapter_tests.main(["mpc"]) == 2
    assert "there is no adapter 'mpc'" in capsys.readouterr().err
