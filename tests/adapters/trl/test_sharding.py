"""What two processes with a model in shards see of it, and what they go back to."""

import json
import math
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from tests.adapters.trl.processes import launch

pytestmark = [pytest.mark.torch, pytest.mark.nightly]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of the processes found."""
    out = tmp_path_factory.mktemp("sharding")
    launch(out, 2, "tests.adapters.trl.sharding_worker", str(out))
    assert (out / "returncode").read_text() == "0", (out / "stderr").read_text()[-3000:]
    return [json.loads((out / f"told-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.parametrize("cut", ["halves", "copies"])
def test_the_norm_of_a_gradient_in_shards_is_that_of_the_whole(seen: Any, cut: str) -> None:
    norm, broken = seen[0]["whole"]
    for process in seen:
        assert process[cut] == [pytest.approx(norm, rel=1e-6), 0, 0]
    assert broken == 0
    assert seen[0][cut] == seen[1][cut]


def test_a_weight_that_is_whole_in_both_processes_counts_once(seen: Any) -> None:
    squared = seen[0]["whole"][0] ** 2
    for process in seen:
        assert process["beside"][0] == pytest.approx(math.sqrt(squared + 12), rel=1e-6)
        assert process["in one process"][0] == pytest.approx(math.sqrt(squared + 6), rel=1e-6)


def test_what_breaks_in_a_shard_of_one_process_both_see(seen: Any) -> None:
    for process in seen:
        norm, gradients, weights = process["broken gradient"]
        assert (math.isnan(norm), gradients, weights) == (True, 1, 0)
        assert process["broken weight"][1:] == [1, 1]


def test_going_back_restores_the_shards_of_each_process_to_the_last_bit(seen: Any) -> None:
    for process in seen:
        assert process["steps"] == [0, 1, 2, 3]
        claims = ("moved", "back after a step", "on as before", "schedule on", "back to the first")
        assert [process[claim] for claim in claims] == [True] * len(claims)
        assert process["schedule back"] == [1, 0.05]


def test_a_snapshot_that_lacks_a_shard_is_none_and_is_deleted(seen: Any) -> None:
    kept = [f"step-{step}.{rank}-of-2.pt" for step in (0, 3) for rank in (0, 1)]
    for process in seen:
        assert process["those that are whole"] == [0, 1, 3]
        assert process["files"] == kept
