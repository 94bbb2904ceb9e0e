"""Models of every kind of chat template in the reference trainer: calls, results, mask, rewards."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference.config import reference_config
from adapters.reference.rollout import Ending, Request, Rollout
from adapters.reference.sampling import Sampler
from adapters.reference.trainer import ReferenceTrainer
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
from tests.adapters.reference.scripted import Script
from tests.adapters.trl.scripted_trl import NOTES
from tests.sweeps import sweep

pytestmark = [pytest.mark.torch, pytest.mark.integration]

QUICK = ("hermes", "harmony", "glm", "gemma-4")
SETTINGS: dict[str, Any] = {
    "steps": 1,
    "group_size": len(SPOKEN),
    "prompts": 1,
    "max_completion_length": LONGEST,
    "learning_rate": 1e-3,
    "workers": 1,
    "sampling": None,
}
ENDINGS = (
    *[Ending.ANSWERED] * 3,
    Ending.OUT_OF_CALLS,
    *[Ending.ANSWERED] * 2,
    Ending.CUT_OFF,
)


def scripted(family: Family, tokenizer: Any, folder: Path, **hooks: Any) -> Any:
    """A trainer whose one group says what `group_of` has; it keeps the rollouts in `played`."""
    trainer: Any = ReferenceTrainer(
        model_of(family, tokenizer),
        tokenizer,
        NOTES,
        folder,
        reference_config(SETTINGS),
        env_kwargs={"step_limit": 3},
        **hooks,
    )
    batches, trainer.played = trainer._batch_sampler, []
    player = batches._player

    def sampler(requests: Sequence[Request]) -> Sampler:
        group = group_of(tokenizer, family, requests[0].task_id)
        said = [[t for turn in turns for t in encoded(tokenizer, turn)] for turns in group]
        names = [request.name for request in requests]
        return Script(said, names, player.settings.temperature, LONGEST, player.model.device)

    sample = batches.sample

    def kept(step: int) -> Any:
        played = sample(step)
        trainer.played += played.rollouts
        return played

    player._sampler, batches.sample = sampler, kept
    return trainer


@pytest.mark.parametrize("family", sweep(FAMILIES, QUICK, name=lambda each: each.format))
def test_a_model_of_every_kind_of_template_goes_through_a_training_step(
    family: Family, tmp_path: Path
) -> None:
    tokenizer = tokenizer_of(family, texts_of(NOTES))
    steps: list[dict[str, float]] = []
    records: list[dict[str, Any]] = []
    trainer = scripted(
        family,
        tokenizer,
        tmp_path,
        on_metrics=lambda step, numbers: steps.append(numbers),
        on_rollouts=lambda step, episodes: records.extend(episodes),
        transcripts=len(SPOKEN),
    )
    trainer.train()

    rollouts: list[Rollout] = trainer.played
    rewards = dict(zip(SPOKEN, [rollout.reward for rollout in rollouts], strict=True))
    assert 1.0 > rewards["right"] > rewards["repaired"] > 0.9 > rewards["wrong"]
    assert rewards["wrong"] == 0.0 > rewards["in a thought"] == rewards["in an open thought"]
    assert rewards["cut off"] < 0 > rewards["silent"]
    assert tuple(rollout.ending for rollout in rollouts) == ENDINGS
    for kind, record in zip(SPOKEN, records, strict=True):
        check_record(family, kind, record)
    known = {"accuracy": 2 / 7, "answered": 5 / 7, "clipped": 1 / 7, "dead_groups": 0.0}
    assert {key: steps[0][key] for key in known} == pytest.approx(known)
    assert steps[0]["grad_norm"] > 0
    group = group_of(tokenizer, family, records[0]["task_id"])
    for turns, rollout in zip(group, rollouts, strict=True):
        said = [encoded(tokenizer, turn) for turn in turns]
        assert [rollout.completion[a:b] for a, b in rollout.turns] == said
        own = [t for t, bit in zip(rollout.completion, rollout.mask, strict=True) if bit]
        assert own == [token for turn in said for token in turn]
    first = rollouts[0]
    told = [t for t, bit in zip(first.completion, first.mask, strict=True) if not bit]
    result = records[0]["turns"][0]["observation"]
    assert tokenizer.decode(told) == told_between(tokenizer, family, records[0]["task_id"], result)
