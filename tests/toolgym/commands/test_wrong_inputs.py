"""Whatever is wrong with a command's input is told in a sentence, at once, and leaves nothing."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.toolgym.commands.wrong_inputs import CASES

ROOT = Path(__file__).resolve().parents[3]
TRAINING = ("train", "preflight", "lab", "recipe")
COMMANDS = sorted({line.split()[0] for line in CASES} - {"nosuch"})
LATE = ("--set gruop=4",)
"""Uses that only a trainer's own config can judge, for which its library has to be loaded."""


def tried(place, command):
    """What each wrong use of a command came to, by its line."""
    module = "tests.toolgym.commands.wrong_inputs"
    done = subprocess.run(
        [sys.executable, "-m", module, str(place), command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [line for line in CASES if line.split()[0] == command]
    assert [result["line"] for result in results] == expected
    return results


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=() if name == "report" else pytest.mark.slow) for name in COMMANDS],
)
def test_a_wrong_use_is_told_in_a_sentence_before_anything_heavy(command, tmp_path):
    if command in TRAINING and find_spec("trl") is None:
        pytest.skip("needs the extra train")
    wrong = []
    for result in tried(tmp_path, command):
        said = " ".join(result["said"].split())
        is_told = CASES[result["line"]] in said and not re.search("Traceback|failed:|━", said)
        is_light = not result["torch"] or result["line"].endswith(LATE)
        if result["status"] != 2 or not is_told or not is_light or result["new"]:
            wrong.append(result)
    assert wrong == []


def test_every_command_has_wrong_uses():
    from tests.toolgym.commands.command_line import run_here

    listed = re.findall(r"^  (\w+)  ", run_here("--help").stdout.partition("Commands:")[2], re.M)
    assert set(listed) - {"doctor"} <= set(COMMANDS)
    assert len(CASES) > 120
