"""An environment of somebody else's, from its installation to the reports on its training."""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from toolgym import read_episodes

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[3]
ENV = "mygym/Locks-v0"
PAGE = (ROOT / "docs" / "own-environment.md").read_text("utf-8")
ANY_ARGUMENT = "def __init__(self, **options):"
OWN_ARGUMENTS = """def __init__(self, step_limit=15, **kwargs):
        options = {'step_limit': step_limit}
        if kwargs.keys() - {'rewards', 'parsing'}:
            raise TypeError(f'unexpected keyword argument {min(kwargs)!r}')"""
PROJECT = PAGE.split("```toml\n")[1].partition("```")[0]
COMMANDS = next(
    part.partition("```")[0] for part in PAGE.split("```python\n") if "import typer" in part
)
SMALL = [
    *(
        "--demonstrations",
        "20",
        "--sft-steps",
        "4",
        "--steps",
        "1",
        "--group-size",
        "2",
        "--prompts",
    ),
    *("2", "--eval-tasks", "4", "--max-completion-length", "96", "--step-limit", "4", "--quiet"),
]
Toolgym = Callable[..., str]


@pytest.fixture(scope="module")
def toolgym(tmp_path_factory: pytest.TempPathFactory) -> Toolgym:
    """The program in a virtual environment with the package; what it prints on stdout."""
    folder = tmp_path_factory.mktemp("own")
    source = folder / "source"
    source.mkdir()
    (code,) = (part.partition("```")[0] for part in PAGE.split("```python\n")[1:2])
    assert code.count(ANY_ARGUMENT) == 1
    (source / "mygym.py").write_text(code.replace(ANY_ARGUMENT, OWN_ARGUMENTS))
    (source / "mygym_commands.py").write_text(COMMANDS)
    (source / "pyproject.toml").write_text(PROJECT)
    python = _environment(folder / "venv")
    pip = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run([*pip, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def run(*arguments: object, status: int = 0) -> str:
        command = [python, "-m", "toolgym", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    return run


def _environment(folder: Path) -> str:
    """The Python of a new virtual environment that sees what this one has, and this checkout."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    tell = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(tell, capture_output=True, text=True, check=True).stdout.strip())
    (packages / "seen.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    return python


@pytest.mark.integration
def test_it_is_listed_played_and_evaluated(toolgym: Toolgym) -> None:
    assert ENV in toolgym("envs")
    assert json.loads(toolgym("eval", ENV, "--json"))["accuracy"] == 1.0
    assert toolgym("safes", "--count", "2") == "2 safes\n"
    help_text = toolgym("safes", "--help")
    assert "Number of safes (default: 3)." in help_text


@pytest.mark.nightly
@pytest.mark.parametrize("trainer", ["trl", "reference"])
def test_it_is_trained(toolgym: Toolgym, trainer: str, tmp_path: Path) -> None:
    run = tmp_path / "run"

    told = toolgym("train", ENV, *SMALL, "--no-preflight", "--trainer", trainer, "--out", run)

    assert "unseen tasks" in told
    if trainer == "trl":
        _what_comes_out_can_be_read(toolgym, run, tmp_path)


def _what_comes_out_can_be_read(toolgym: Toolgym, run: Path, tmp_path: Path) -> None:
    model = run / "checkpoints" / "final"
    evaluated = tmp_path / "evaluated"
    toolgym("eval", ENV, "--policy", model, "--step-limit", "4", "--n", "2", "--out", evaluated)
    assert len(read_episodes(evaluated)) == 2
    for folder in (run, evaluated):
        toolgym("report", folder, "--out", tmp_path / "page.html")
        assert "<html" in (tmp_path / "page.html").read_text("utf-8")
        toolgym("stats", folder, status=2)  # its family counts nothing, and it has no second rule
        toolgym("audit", folder, "--quiet", status=2)


@pytest.mark.nightly
def test_preflight_looks_at_it(toolgym: Toolgym) -> None:
    small = ("--demonstrations", "20", "--sft-steps", "4", "--tasks", "2", "--tries", "2")
    length = ("--max-completion-length", "96", "--step-limit", "4")
    told = json.loads(toolgym("preflight", ENV, *small, *length, "--json", "--quiet", status=1))

    assert told["env_id"] == ENV
    assert {finding["check"] for finding in told["findings"]} >= {"validity"}
