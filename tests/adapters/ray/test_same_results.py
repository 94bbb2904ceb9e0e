"""What the workers of a Ray cluster make is what one process makes, byte by byte."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra `ray`: make test-adapters NAME=ray")

from toolgym import policies, rollout
from toolgym.family import SynthesisOrder
from toolgym.policies import ByName
from toolgym.records import Evaluation
from toolgym.registration import family_of

EXPLORE, COMPOSE = "sqlgym/Explore-v0", "aflowgym/Compose-v0"


def lines(evaluation: Evaluation) -> list[str]:
    return [json.dumps(record.to_json()) for record in evaluation]


@pytest.mark.parametrize(
    ("env_id", "policy", "how"),
    [
        (EXPLORE, "expert", {"k": 1}),
        (EXPLORE, "random", {"k": 3}),
        (EXPLORE, "random", {"k": 2, "shard": (2, 3)}),
        (COMPOSE, "random", {"k": 2}),
    ],
)
def test_records_are_those_of_one_process(
    workers: Any, env_id: str, policy: str, how: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"n": 7, "seed": 5, "batch": 3, "split": "dev", **how}
    one = rollout.evaluate(env_id, policies.load(policy, seed=5), **options)
    told, kept = [], []

    many = rollout.evaluate(
        env_id,
        ByName(policy, seed=5),
        map=workers,
        progress=lambda *state: told.append(state),
        on_episode=kept.append,
        **options,
    )

    assert lines(many) == lines(one)
    assert many == one
    assert tuple(kept) == one.records
    assert told[-1] == (len(one), len(one))
    assert told == sorted(told)


def test_written_tasks_are_those_of_one_process(
    workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = family_of(EXPLORE)
    files = family.invent(tmp_path / "invented", 5)
    empty = tmp_path / "empty.db"
    empty.write_bytes(files[0].read_bytes()[:100])
    written, told = {}, []
    for name, map_parts in (("ray", workers), ("one", map)):
        # The workers have the cache that they were started with, and this process has no other.
        monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / f"cache-{name}"))
        out, splits = tmp_path / name, {"train": 0.6, "dev": 0.4}
        sources = (tmp_path / "invented", empty)
        order = SynthesisOrder(sources, out, splits, {"n": 12, "seed": 3}, map=map_parts)
        summary = family.synthesize(order, lambda *state: told.append(state))
        made = {
            str(file.relative_to(out)): file.read_bytes()
            for file in sorted(out.rglob("*"))
            if file.is_file()
        }
        written[name] = (json.dumps({**summary, "out": ""}), made)

    assert written["ray"] == written["one"]
    assert {"dev.json", "train_spider.json"} <= written["one"][1].keys()
    assert '"empty"' in written["one"][0]
    assert told[0] == (12, 6 * 12)  # a whole database
