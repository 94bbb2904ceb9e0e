"""The commands that serve, without their extras: the help is there, and says what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from adapters.commands import mcp, serve
from toolgym import ConfigurationError
from toolgym.cli import help_text

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = {"mcp": mcp.command, "openenv": serve.command}
"""By the extra that each needs, which is also the name of the library and of the adapter."""


@pytest.mark.parametrize("extra", COMMANDS)
def test_without_the_extra_it_says_what_to_install(
    extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)
    monkeypatch.delitem(sys.modules, f"adapters.{extra}.server", raising=False)

    with pytest.raises(ConfigurationError, match=rf"pip install 'toolgym\[{extra}\]'"):
        COMMANDS[extra]("sqlgym/Explore-v0")


@pytest.mark.parametrize("extra", COMMANDS)
def test_importing_the_command_imports_nothing_of_the_extra(extra: str) -> None:
    names = {extra, "mcp_types", "fastapi", "uvicorn", "starlette", "anyio"}
    module = COMMANDS[extra].__module__
    code = f"import sys, {module}; print({names} & set(sys.modules) or 'nothing')"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "nothing"


@pytest.mark.parametrize(
    ("extra", "shown"),
    [("mcp", "--task-id"), ("mcp", "--http"), ("openenv", "--host 0.0.0.0 --allow-host")],
)
def test_the_help_shows_the_ways_to_serve(extra: str, shown: str) -> None:
    assert shown in help_text(COMMANDS[extra]).partition("Example:")[2]
