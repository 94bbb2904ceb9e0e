"""Models of every kind of chat template in TRL's trainer: calls, results, loss mask, rewards."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from tests.adapters.call_templates import (
    FAMILIES,
    LONGEST,
    SPOKEN,
    Family,
    check_record,
    encoded,
    group_of,
    model_of,
    texts_of,
    tokenizer_of,
    told_between,
)
from tests.adapters.trl.scripted_trl import NOTES, scripted

pytestmark = pytest.mark.torch

GATE = ("harmony", "gemma-4")
"""Formats that differ from all others in where a turn ends, or a result stands."""


def tier(family: Family) -> Any:
    return pytest.mark.integration if family.format in GATE else pytest.mark.nightly


@pytest.mark.parametrize(
    "family", [pytest.param(each, id=each.format, marks=tier(each)) for each in FAMILIES]
)
def test_a_model_of_every_kind_of_template_goes_through_a_training_step(
    family: Family, tmp_path: Path
) -> None:
    tokenizer = tokenizer_of(family, texts_of(NOTES))
    steps: list[dict[str, float]] = []
    records: list[dict[str, Any]] = []
    groups: list[list[list[str]]] = []

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        groups.append(group_of(tokenizer, family, inputs[0]["task_id"]))
        return groups[-1]

    trainer = scripted(
        model_of(family, tokenizer),
        tokenizer,
        tmp_path,
        script,
        env_kwargs={"step_limit": 3},
        settings={
            "per_device_train_batch_size": len(SPOKEN),
            "num_generations": len(SPOKEN),
            "max_completion_length": LONGEST,
        },
        on_metrics=lambda step, numbers: steps.append(numbers),
        on_rollouts=lambda step, episodes: records.extend(episodes),
        transcripts=len(SPOKEN),
    )
    trainer.train()

    rewards = dict(zip(SPOKEN, trainer._logs["rewards"]["NotesEnvironment"], strict=True))
    assert 1.0 > rewards["right"] > rewards["repaired"] > 0.9
    assert rewards["wrong"] == 0.0
    assert rewards["silent"] == rewards["in a thought"] == rewards["in an open thought"] < 0
    assert rewards["cut off"] < 0
    for kind, record in zip(SPOKEN, records, strict=True):
        check_record(family, kind, record)
    known = {"accuracy": 2 / 7, "answered": 3 / 7, "clipped": 1 / 7, "unfinished": 1 / 7}
    known |= {"dead_groups": 0.0, "faults": 0.0, "repairs_per_call": 4 / 6}
    assert {key: steps[0][key] for key in known} == pytest.approx(known)
    assert steps[0]["grad_norm"] > 0
    mask, _, ids = trainer.outcome[:3]
    turns = [
        said if kind in ("right", "repaired") else said[:1]
        for kind, said in zip(SPOKEN, groups[0], strict=True)
    ]
    for said, own, tokens in zip(turns, mask, ids, strict=True):
        expected = [token for turn in said for token in encoded(tokenizer, turn)]
        assert [token for token, bit in zip(tokens, own, strict=True) if bit] == expected
    begin = mask[0].index(0)
    told = tokenizer.decode(ids[0][begin : mask[0].index(1, begin)])
    result = records[0]["turns"][0]["observation"]
    assert told == told_between(tokenizer, family, records[0]["task_id"], result)
