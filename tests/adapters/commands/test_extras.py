"""Without an extra its commands say what to install, and importing them imports none of it."""

import subprocess
import sys

import pytest

from adapters.commands import mcp, serve
from toolgym import ConfigurationError

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


def test_importing_commands_and_adapters_imports_nothing_of_an_extra() -> None:
    modules = "adapters.trl, " + ", ".join(
        f"adapters.commands.{name}" for name in ("mcp", "serve", "train")
    )
    heavy = {"torch", "transformers", "trl", "datasets"}
    heavy |= {"mcp", "mcp_types", "openenv", "fastapi", "uvicorn", "starlette", "anyio"}
    code = f"import sys, {modules}; print({heavy} & set(sys.modules) or 'nothing')"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "nothing"
