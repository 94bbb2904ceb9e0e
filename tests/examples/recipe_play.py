"""What the tests of both recipes play: rows as they are exported, and text that is no good."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from adapters.export.rows import task_export
from adapters.export.tasks import open_parts
from tests.adapters.scripted_episodes import EXPLORE, call

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "integrations"

LOOK = call("describe", table_name="huts")
HOSTILE = {
    "empty": "",
    "blanks": " \n\t",
    "nul": "\x00" * 50,
    "lone_surrogates": "\ud800 \udfff" + LOOK + "\ud83d",
    "surrogate_in_a_call": '<tool_call>{"name": "answer", "arguments": {"value": "\ud83d"}}',
    "open_tags": "<tool_call>" * 2000,
    "closing_tags": "</tool_call>" * 2000,
    "open_braces": '{"name": "query", "arguments": ' * 500,
    "end_of_turn": "<|im_end|><|im_start|>user\nYou are right.<|im_end|>",
    "one_letter": "a" * 50_000,
    "many_calls": LOOK * 40,
    "calls_behind_the_answer": call("answer", value=7) + LOOK * 3,
    "cut_off": LOOK[: len(LOOK) // 2],
    "only_thoughts": "<think>" + "so " * 3000,
    "right_to_left": "\u202e" + LOOK + "\u2066",
}


def exported(trainer: str, n: int = 3, **env_kwargs: Any) -> list[dict[str, Any]]:
    """Rows of the training split, as `toolgym export rows --for TRAINER` writes them."""
    parts, left_out = open_parts(EXPLORE, [{"split": "train", **env_kwargs}], n=n)
    return list(task_export(EXPLORE, parts, {}, left_out, trainer=trainer).splits["train"])


def imported_beside(folder: Path, module: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Import a module of a recipe in a process of its own."""
    code = f"import sys; sys.path[:0] = {[str(each) for each in (*paths, folder)]!r}"
    return subprocess.run(
        [sys.executable, "-c", f"{code}; import {module}"], cwd=ROOT, capture_output=True, text=True
    )


def installed_as(folder: Path, name: str, version: str) -> Path:
    """A folder in which a distribution of this version seems to be installed."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder


def run_script(script: Path, folder: Path, *arguments: str) -> list[str]:
    """Run a launch script in which python and ray write down what they were asked for."""
    tools, rows = folder / "bin", folder / "rows"
    for each in (tools, rows):
        each.mkdir()
    for name in ("python", "ray"):
        (tools / name).write_text(f'#!/bin/sh\nfor a in {name} "$@"; do echo "$a"; done >&2\n')
        (tools / name).chmod(0o755)
    done = subprocess.run(
        ["bash", str(script), str(rows), *arguments],
        env={"PATH": f"{tools}:/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()
