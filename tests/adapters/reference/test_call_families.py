"""Models of every kind of chat template in the reference trainer: calls, results, mask, rewards."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference.play import Rollout
from adapters.reference.train import ReferenceTrainer
from adapters.training.settings import GrpoSettings
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
from tests.adapters.reference.scripted import ScriptedEngine
from tests.adapters.trl.scripted_trl import NOTES
from tests.sweeps import sweep
from toolgym.records import EpisodeRecord

pytestmark = [pytest.mark.torch, pytest.mark.integration]

QUICK = ("hermes", "harmony", "glm", "gemma-4")
SETTINGS: dict[str, Any] = {
    "steps": 1,
    "group_size": len(SPOKEN),
    "prompts": 1,
    "max_completion_length": LONGEST,
    "max_draws": None,
}


@pytest.mark.parametrize("family", sweep(FAMILIES, QUICK, name=lambda each: each.format))
def test_a_model_of_every_kind_of_template_goes_through_a_training_step(
    family: Family, tmp_path: Path
) -> None:
    tokenizer = tokenizer_of(family, texts_of(NOTES))
    model = model_of(family, tokenizer)
    steps: list[dict[str, float]] = []
    records: list[dict[str, Any]] = []
    rollouts: list[Rollout] = []

    def on_step(step: int, metrics: dict[str, float], episodes: list[EpisodeRecord]) -> None:
        steps.append(metrics)
        records.extend(episode.to_json() for episode in episodes)

    trainer = ReferenceTrainer(
        model,
        tokenizer,
        NOTES,
        tmp_path,
        GrpoSettings.model_validate(SETTINGS),
        env_kwargs={"step_limit": 3},
        on_step=on_step,
    )
    player = trainer.player

    def said(stream: str) -> list[int]:
        """The member of a group and its task are in the name: seed-step-group-member-task."""
        task_id = stream.split("-", 4)[4]
        turns = group_of(tokenizer, family, task_id)[int(stream.split("-")[3])]
        return [token for turn in turns for token in encoded(tokenizer, turn)]

    def play(given: list[Rollout], **how: Any) -> None:
        plain(given, **how)
        rollouts.extend(given)

    plain, player.play = player.play, play
    player.engine = ScriptedEngine(model, player._chat.stop, said)
    trainer.train()

    rewards = dict(zip(SPOKEN, [rollout.reward for rollout in rollouts], strict=True))
    assert 1.0 > rewards["right"] > rewards["repaired"] > 0.9 > rewards["wrong"]
    assert rewards["wrong"] == 0.0 > rewards["in a thought"] == rewards["in an open thought"]
    assert rewards["cut off"] < 0 > rewards["silent"]
    assert [rollout.cut for rollout in rollouts] == [False] * 6 + [True]
    assert [rollout.unfinished for rollout in rollouts] == [False] * 6 + [True]
    for kind, record in zip(SPOKEN, records, strict=True):
        check_record(family, kind, record)
    known = {"accuracy": 2 / 7, "answered": 5 / 7, "clipped": 1 / 7, "dead_groups": 0.0}
    assert {key: steps[0][key] for key in known} == pytest.approx(known)
    assert steps[0]["grad_norm"] > 0
    group = group_of(tokenizer, family, records[0]["task_id"])
    for turns, rollout in zip(group, rollouts, strict=True):
        spoken, tokens = [encoded(tokenizer, turn) for turn in turns], rollout.tokens
        assert [tokens.tokens[a:b] for a, b in tokens.turns] == spoken
    first = rollouts[0].tokens
    told = [token for token, bit in zip(first.tokens, first.mask, strict=True) if not bit]
    result = records[0]["turns"][0]["observation"]
    assert tokenizer.decode(told) == told_between(tokenizer, family, records[0]["task_id"], result)
