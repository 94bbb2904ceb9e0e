"""`toolgym serve` without its extra: the help is there, and a sentence says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from adapters.commands.serve import command
from toolgym import ConfigurationError
from toolgym.cli import help_text

ROOT = Path(__file__).resolve().parents[3]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openenv", None)
    monkeypatch.delitem(sys.modules, "adapters.openenv.server", raising=False)

    with pytest.raises(ConfigurationError, match=r"pip install 'toolgym\[openenv\]'"):
        command("sqlgym/Explore-v0")


def test_importing_the_command_imports_nothing_of_the_extra() -> None:
    heavy = "{'openenv', 'fastapi', 'uvicorn', 'starlette', 'anyio'} & set(sys.modules)"
    code = f"import sys, adapters.commands.serve; print({heavy} or 'nothing')"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "nothing"


def test_the_help_shows_how_it_is_reached_from_elsewhere() -> None:
    examples = help_text(command).partition("Example:")[2]

    assert "--host 0.0.0.0 --allow-host" in examples
