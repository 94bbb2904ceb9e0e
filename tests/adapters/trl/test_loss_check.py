"""The first batch stops a run in which TRL does not train on what was played."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from trl import GRPOTrainer

from adapters.trl import Rollouts
from adapters.trl.loss_check import LossCheck
from tests.adapters.trl.scripted_rollouts import Speaker, answers, scripted_trainer
from tests.adapters.trl.scripted_trl import NOTES, call
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    """A fresh one for each test."""
    return deepcopy(read_tokenizer)


def script(speaker: Speaker) -> list[str]:
    """Reads the note, and answers rightly in the first rollout of each group."""
    value = 90 + speaker.member if speaker.member else speaker.number
    return answers(value, call("read", note=speaker.task))


class WithoutMask(GRPOTrainer):
    """A later TRL that no longer takes `env_mask`: it trains on tool results too."""

    def _generate(self, prompts: list[Any]) -> Any:
        ids, completions, _, *rest = super()._generate(prompts)
        return ids, completions, None, *rest


class WithShortMask(GRPOTrainer):
    """A later TRL that trains on the first turn only."""

    def _generate(self, prompts: list[Any]) -> Any:
        ids, completions, masks, *rest = super()._generate(prompts)
        short = [[bit and place < 5 for place, bit in enumerate(mask)] for mask in masks]
        return ids, completions, [list(map(int, mask)) for mask in short], *rest


class WithTurnedRewards(GRPOTrainer):
    """A later TRL that gives the rewards of a batch to other rollouts."""

    def _calculate_rewards(self, *args: Any) -> torch.Tensor:
        rewards: torch.Tensor = super()._calculate_rewards(*args)
        return rewards.roll(1, dims=0)


class WithOtherTokens(GRPOTrainer):
    """A later TRL that changes the sequences."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        other = inputs["completion_ids"].roll(1, dims=1)
        return super()._compute_loss(model, {**inputs, "completion_ids": other})


@pytest.mark.parametrize(
    ("trainer_class", "difference"),
    [
        (WithoutMask, r"the loss includes \d+ tokens that the policy did not sample"),
        (WithShortMask, r"the loss lacks \d+ of \d+ tokens of a rollout"),
        (
            WithTurnedRewards,
            r"is trained in the opposite direction, so its reward .* is not the environment's",
        ),
        (WithOtherTokens, "the loss has a sequence that was not played"),
    ],
)
def test_what_differs_is_said_before_the_first_update(
    trainer_class: Any, difference: str, tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    trainer = scripted_trainer(tiny_model, tokenizer, tmp_path, script, trainer_class=trainer_class)
    before = deepcopy(tiny_model.state_dict())
    with pytest.raises(
        ConfigurationError, match=rf"TRL's loss differs from the rollouts .*{difference}"
    ):
        trainer.train()
    assert all(torch.equal(value, before[name]) for name, value in tiny_model.state_dict().items())


def test_turned_rewards_are_seen_where_trl_masks_more_tokens(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    trainer = scripted_trainer(
        tiny_model,
        tokenizer,
        tmp_path,
        script,
        trainer_class=WithTurnedRewards,
        settings={"top_entropy_quantile": 0.5},
    )
    with pytest.raises(ConfigurationError, match="is trained in the opposite direction"):
        trainer.train()


def test_a_model_is_checked_by_its_latest_trainer_only(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """The first trainer ends in the middle of its first batch."""
    options: dict[str, Any] = {"trainer_class": WithoutMask}
    first = scripted_trainer(tiny_model, tokenizer, tmp_path, script, **options)
    with pytest.raises(ConfigurationError, match="the loss includes"):
        first.train()
    second = scripted_trainer(
        tiny_model, tokenizer, tmp_path, lambda speaker: answers(90 + speaker.member)
    )
    second.train()
    assert second.seen[0]["rollouts"] == 8
    deepcopy(tiny_model)


def test_another_reward_function_is_refused_after_the_first_step(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """It pays all rollouts alike, so only the mean reward differs."""

    def bonus(completions: Any, **_: Any) -> list[float]:
        return [0.5] * len(completions)

    trainer = scripted_trainer(tiny_model, tokenizer, tmp_path, script, more_rewards=[bonus])
    with pytest.raises(ConfigurationError, match=r"mean reward of 0\.89.* mean score .* is 0\.39"):
        trainer.train()


def test_scores_of_rollouts_that_were_not_played_are_refused() -> None:
    rollouts = Rollouts(NOTES)
    with pytest.raises(ConfigurationError, match="other completions than `Rollouts` returned"):
        rollouts.score(completion_ids=[[1, 2]], score=[1.0], log_metric=print)


def test_a_tensor_that_the_optimizer_lacks_is_named(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """An optimizer that is made before `peft_config` adds the adapter has none of its tensors."""
    from peft import LoraConfig

    config = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    optimizer = torch.optim.AdamW(tiny_model.parameters())
    trainer = scripted_trainer(
        tiny_model,
        tokenizer,
        tmp_path,
        script,
        peft_config=config,
        optimizers=(optimizer, None),
    )
    with pytest.raises(
        ConfigurationError, match=r"14 of the 14 trainable tensors are not in .*lora"
    ):
        trainer.train()


def test_twins_with_other_rewards_are_not_confused(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """The control gives rollouts with the same tokens different rewards."""
    trainer = scripted_trainer(
        tiny_model,
        tokenizer,
        tmp_path,
        lambda speaker: answers(99 if speaker.member else speaker.number),
        rollouts={"control": "shuffled-rewards"},
    )
    trainer.train()
    assert trainer.seen[0]["mismatch"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.integration
def test_a_model_whose_output_shows_no_tokens_is_warned_about(
    tiny_model: Any,
    tokenizer: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LossCheck, "_after_forward", lambda *args: None)
    settings = {"max_steps": 2}
    trainer = scripted_trainer(tiny_model, tokenizer, tmp_path, script, settings=settings)
    trainer.train()
    assert "The first batch was not checked" in caplog.text
    assert "mismatch" not in trainer.seen[0]


@pytest.mark.integration
def test_a_batch_in_which_nothing_is_learned_is_not_the_first_one(
    tiny_model: Any, tokenizer: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def late(speaker: Speaker) -> list[str]:
        return answers(99) if speaker.step == 1 else script(speaker)

    trainer = scripted_trainer(
        tiny_model,
        tokenizer,
        tmp_path,
        late,
        settings={"max_steps": 2},
        rollouts={"max_draws": 1.0},
        trainer_class=WithoutMask,
    )
    with pytest.raises(ConfigurationError, match="did not sample"):
        trainer.train()
    assert trainer.state.global_step == 1
    assert "The first batch was not checked" not in caplog.text


def test_a_difference_between_sampling_and_training_is_measured(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """The recorded log-probabilities are a tenth too high: k3 is e^-.1 - 1 + .1."""
    trainer = scripted_trainer(tiny_model, tokenizer, tmp_path, script)
    prepare = trainer.rollouts._prepare

    def prepared(*args: Any) -> Any:
        player = prepare(*args)
        generate = player.engine.generate

        def shifted(generations: Any, *rest: Any, **named: Any) -> None:
            generate(generations, *rest, **named)
            for each in generations:
                pairs = zip(each.log_probs, each.mask, strict=True)
                each.log_probs = [value + 0.1 * bit for value, bit in pairs]

        player.engine.generate = shifted
        return player

    trainer.rollouts._prepare = prepared
    trainer.train()
    assert trainer.seen[0]["mismatch"] == pytest.approx(0.004837, rel=1e-3)
