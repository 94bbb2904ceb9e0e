"""Whatever is wrong with a command's input is told in a sentence, at once, and leaves nothing."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import run_here
from tests.toolgym.commands.wrong_inputs import CASES, prepare

ROOT = Path(__file__).resolve().parents[3]
TRAINING = ("train", "preflight")
"""Commands that come with the extra `train`."""
COMMANDS = sorted({line.split()[0] for line in CASES} - {"nosuch"})
LIGHT = [name for name in COMMANDS if name not in TRAINING]
LATE = ("--set gruop=4",)
"""Uses that only a trainer's own config can judge, for which its library has to be loaded."""
MANY = 4
"""Wrong uses of a command that are tried in this process; all of them are tried in their own."""


def is_told(line: str, said: str) -> bool:
    words = " ".join(said.split())
    return CASES[line] in words and not re.search("Traceback|failed:|━", words)


@pytest.mark.parametrize("command", LIGHT)
def test_a_wrong_use_is_told_in_a_sentence_with_status_2_and_leaves_nothing(
    command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    prepare(Path())
    before = set(tmp_path.rglob("*"))

    for line in [line for line in CASES if line.split()[0] == command][:MANY]:
        done = run_here(*line.split(), COLUMNS="300")
        assert (done.returncode, is_told(line, done.stderr)) == (2, True), line + done.stderr
        assert set(tmp_path.rglob("*")) == before, line


@pytest.mark.integration
@pytest.mark.parametrize(
    "commands",
    [LIGHT, pytest.param(TRAINING, marks=pytest.mark.torch)],
    ids=["light", "training"],
)
def test_every_wrong_use_is_told_before_anything_heavy(commands, tmp_path):
    if commands == TRAINING and find_spec("trl") is None:
        pytest.skip("needs the extra train")
    module = "tests.toolgym.commands.wrong_inputs"
    done = subprocess.run(
        [sys.executable, "-m", module, str(tmp_path), *commands],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=600,
    )

    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["line"] for each in results] == [c for c in CASES if c.split()[0] in commands]
    wrong = []
    for result in results:
        is_light = not result["torch"] or result["line"].endswith(LATE)
        told = is_told(result["line"], result["said"])
        if result["status"] != 2 or not told or not is_light or result["new"]:
            wrong.append(result)
    assert wrong == []


def test_every_command_has_wrong_uses():
    listed = re.findall(r"^  (\w+)  ", run_here("--help").stdout.partition("Commands:")[2], re.M)

    assert set(listed) <= set(COMMANDS)
