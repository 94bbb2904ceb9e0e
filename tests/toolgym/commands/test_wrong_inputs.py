"""Whatever is wrong with a command's input is told in a sentence, at once, and leaves nothing."""

import re
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import python, run_here
from tests.toolgym.commands.wrong_inputs import CASES, wrong_ones

SLOW = ("eval", "train", "preflight")
COMMANDS = sorted({line.split()[0] for line in CASES} - {*SLOW, "nosuch"})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_use_is_told_in_a_sentence_with_status_2_and_leaves_nothing(
    command, tmp_path, monkeypatch
):
    if command == "export":
        pytest.importorskip("datasets", reason="needs the extra train")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    assert wrong_ones([command]) == []


@pytest.mark.integration
@pytest.mark.parametrize(
    "commands", [SLOW[:1], pytest.param(SLOW[1:], marks=pytest.mark.torch)], ids=["eval", "train"]
)
def test_a_wrong_use_of_a_model_is_told_before_anything_heavy(commands, tmp_path):
    if "train" in commands:
        pytest.importorskip("trl", reason="needs the extra `train`")
    root = Path(__file__).parents[3]
    done = python(
        f"""
        import os, sys
        from tests.toolgym.commands.wrong_inputs import wrong_ones
        os.chdir({str(tmp_path)!r})
        print(wrong_ones({commands}), "torch" in sys.modules)
        """,
        root,
    )

    assert done.stdout == "[] False\n", done.stderr


def test_every_command_has_wrong_uses():
    listed = re.findall(r"^  (\w+)  ", run_here("--help").stdout.partition("Commands:")[2], re.M)

    assert set(listed) <= {*COMMANDS, *SLOW}
