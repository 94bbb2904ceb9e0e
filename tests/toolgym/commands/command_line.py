"""Running `toolgym` as a user does, and installing packages that add to it.

`run` starts the console script in a process of its own, `run_here` saves that process. `install`
lays a distribution into a folder as pip would: a module, metadata and entry points; with the folder
on PYTHONPATH it is there, and within `on_path` in this process, which forgets it afterwards.
"""

import io
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import gymnasium as gym
import pytest

from toolgym.cli import main
from toolgym.registration import load_environments

Finished = subprocess.CompletedProcess[str]
HEAVY = {"torch", "transformers", "trl", "datasets"}
SCRIPT = shutil.which("toolgym", path=str(Path(sys.executable).parent)) or "toolgym"


def environ(path: Path | None = None, **more: str) -> dict[str, str]:
    """The environment of a process: `path` becomes PYTHONPATH, no traceback is asked for."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TOOLGYM_TRACEBACK")}
    return kept | ({"PYTHONPATH": str(path)} if path else {}) | {"COLUMNS": "200"} | more


def run(*arguments: str, stdin: str = "", path: Path | None = None, **more: str) -> Finished:
    """Run `toolgym ARGUMENTS`; `more` are environment variables."""
    return subprocess.run(
        [SCRIPT, *arguments],
        input=stdin,
        env=environ(path, **more),
        capture_output=True,
        text=True,
        timeout=600,
    )


@contextmanager
def on_path(folder: Path) -> Iterator[None]:
    """What is installed in a folder is there, and gone afterwards with all that it registered."""
    modules, environments = set(sys.modules), set(gym.registry)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        load_environments.cache_clear()
        try:
            yield
        finally:
            load_environments.cache_clear()
            for name in gym.registry.keys() - environments:
                del gym.registry[name]
            for name in sys.modules.keys() - modules:
                if (getattr(sys.modules[name], "__file__", "") or "").startswith(f"{folder}"):
                    del sys.modules[name]


def run_here(*arguments: object, path: Path | None = None, **more: str) -> Finished:
    """Run `toolgym ARGUMENTS` in this process, which saves the second that starting one takes."""
    if path is not None:
        with on_path(path):
            return run_here(*arguments, **more)
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.StringIO())
        patch.setenv("COLUMNS", "200")
        patch.delenv("TOOLGYM_TRACEBACK", raising=False)
        for name, value in more.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit, match=r"^\d+$") as end:
            main([*map(str, arguments)])
    code = int(end.value.code or 0)
    return Finished(arguments, code, out.getvalue(), err.getvalue())


def python(code: str, path: Path | None = None) -> Finished:
    """Run a piece of Python; the current folder is not on its path."""
    command = [sys.executable, "-P", "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environ(path), capture_output=True, text=True, timeout=600)


def install(
    folder: Path,
    name: str,
    module: str,
    points: dict[str, str],
    requires: tuple[str, ...] = (),
) -> Path:
    """Lay a distribution with one module of its own name into a folder.

    Args:
        folder: Where to; made if it is not there.
        name: Of the distribution and its module.
        module: The module's text.
        points: Entry points, "group: name" to value.
        requires: Lines of its requirements.
    """
    info = folder / f"{name}-9.9.dist-info"
    info.mkdir(parents=True)
    if module:
        (folder / f"{name}.py").write_text(textwrap.dedent(module))
    lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 9.9"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    text = ""
    for key, value in points.items():
        group, point = key.split(": ")
        text += f"[{group}]\n{point} = {value}\n"
    (info / "entry_points.txt").write_text(text)
    return folder


def names_torch_free(modules: str) -> bool:
    """Whether a list of imported modules, as a text, holds no training library."""
    return not HEAVY & set(modules.split())
