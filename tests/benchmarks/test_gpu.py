"""The benchmark of one device runs everywhere, and leaves out what there is no time for."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from benchmarks.gpu import main

pytestmark = [pytest.mark.torch, pytest.mark.integration]

SMALL = ["--model", "tiny", "--device", "cpu", "--runs", "1", "--sequences", "4"]
SMALL += ["--group-size", "2", "--prompt", "32", "--completion", "6"]


@pytest.fixture(autouse=True)
def _log_level() -> Iterator[None]:
    """The benchmark silences the guards of this process."""
    logger = logging.getLogger("adapters")
    level = logger.level
    yield
    logger.setLevel(level)


def test_every_part_is_measured_next_to_others_on_a_cpu(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    result = main([*SMALL, "--json", str(file)])

    assert json.loads(file.read_text()) == result
    assert result["skipped"] == []
    measured = {(each["part"], each["by"]): each for each in result["figures"]}
    for part in ("imitation", "prefill", "decode", "update"):
        for by in ("toolgym", "plain loop"):
            assert len(measured[part, by]["runs"]) == 1
            # A decode step is a difference of two measurements, which noise can make negative.
            assert part == "decode" or measured[part, by]["tokens_per_second"] > 0
    assert {("decode", "generate"), ("update", "TRL")} <= measured.keys()
    steps = [measured["GRPO step", by]["seconds"] for by in ("toolgym", "TRL")]
    assert all(seconds > 0 for seconds in steps)
    assert measured["new process, first rollouts", "toolgym"]["first"] > 0
    assert result["machine"].keys() >= {"device", "torch", "transformers", "trl"}


def test_what_the_budget_does_not_allow_is_skipped_and_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = main([*SMALL, "--budget", "0"])
    assert result["figures"] == []
    assert "skipped: GRPO step, toolgym" in capsys.readouterr().out
