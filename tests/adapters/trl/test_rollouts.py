"""`Rollouts` in TRL's stock trainer: masks, rewards, dynamic sampling, faults, resuming, LoRA."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from datasets import Dataset, IterableDataset
from trl import GRPOConfig, GRPOTrainer

from adapters.trl import Rollouts
from tests.adapters.trl.scripted_rollouts import (
    BROKEN,
    Speaker,
    answers,
    named_copy,
    one_right,
    scripted_trainer,
)
from tests.adapters.trl.scripted_trl import END, NOTES, call, same
from toolgym import ConfigurationError, EnvironmentFault
from toolgym.rewards import MISTAKES
from toolgym.runs.metrics import METRICS

pytestmark = pytest.mark.torch

Make = Callable[..., Any]


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    """A fresh one for each test."""
    return deepcopy(read_tokenizer)


@pytest.fixture
def make(tiny_model: Any, tokenizer: Any, tmp_path: Path) -> Make:
    """Makes a trainer whose words are scripted, and which keeps what it reports."""

    def made(script: Any, folder: Path | None = None, **options: Any) -> Any:
        model = options.pop("model", None)
        model = named_copy(tiny_model, tmp_path / "model") if model is None else model
        return scripted_trainer(model, tokenizer, folder or tmp_path / "run", script, **options)

    return made


def even_notes_live(speaker: Speaker) -> list[str]:
    """Every other rollout of an even note is right; no rollout of an odd note is."""
    is_right = speaker.number % 2 == 0 and speaker.member % 2 == 0
    before = [] if speaker.member % 3 else [call("count", text="a")]
    return answers(speaker.number if is_right else 99, *before)


def learned_tasks(trainer: Any) -> list[str]:
    """The tasks with a token in the loss, over all batches."""
    return [
        task
        for output in trainer.outputs
        for task, mask in zip(output["task_id"][::4], output["env_mask"][::4], strict=True)
        if any(mask)
    ]


# What TRL is given


def test_the_loss_has_the_sampled_tokens_and_the_reward_is_the_score(
    make: Make, tokenizer: Any
) -> None:
    def script(speaker: Speaker) -> list[str]:
        return answers(99 if speaker.member else speaker.number, call("read", note=speaker.task))

    trainer = make(script)
    trainer.train()
    (output,) = trainer.outputs
    for ids, mask, speaker in zip(
        output["completion_ids"], output["env_mask"], output["task_id"], strict=True
    ):
        sampled = tokenizer.decode([i for i, bit in zip(ids, mask, strict=True) if bit])
        assert sampled.startswith(call("read", note=speaker) + "<tool_call>")
        assert "The number is" not in sampled
        assert "The number is" in tokenizer.decode(ids)
    told = [episode.score for episode in trainer.episodes[0]]
    assert output["score"] == told
    assert list(trainer._logs["rewards"]["score"]) == pytest.approx(told)
    assert trainer.seen[0]["accuracy"] == 0.25
    assert trainer.recorder.moved(1) > 0


def test_a_malformed_call_costs_and_the_rollout_goes_on(make: Make) -> None:
    trainer = make(lambda speaker: answers(speaker.number, *[BROKEN] * (speaker.member % 2)))
    trainer.train()
    (output,) = trainer.outputs
    clean, broken, *_ = output["score"]
    assert 0 < broken < clean


def test_metrics_have_the_names_of_the_vocabulary(make: Make) -> None:
    trainer = make(even_notes_live, rollouts={"max_draws": 3.0}, settings={"beta": 0.01})
    trainer.train()
    (metrics,) = trainer.seen
    assert not metrics.keys() - METRICS.keys()
    missing = {key for key, metric in METRICS.items() if "grpo" in metric.phases} - metrics.keys()
    assert missing == {"policy_loss", "ratio", *MISTAKES}  # all tasks have an answer
    assert metrics["mismatch"] == pytest.approx(0.0, abs=1e-6)
    line = trainer.state.log_history[0]
    for name in ("accuracy", "dead_groups", "entropy", "rollouts"):
        assert line[f"toolgym/{name}"] == pytest.approx(metrics[name])


def test_the_entropy_estimate_is_the_mean_surprise_of_the_sampled_tokens(make: Make) -> None:
    trainer = make(one_right)
    trainer.train()
    (output,) = trainer.outputs
    pairs = [
        (value, bit)
        for values, mask in zip(output["logprobs"], output["env_mask"], strict=True)
        for value, bit in zip(values, mask, strict=True)
    ]
    sampled = [value for value, bit in pairs if bit]
    assert trainer.seen[0]["entropy"] == pytest.approx(-sum(sampled) / len(sampled))


def test_a_second_update_from_the_same_rollouts_reports_no_rollouts(make: Make) -> None:
    trainer = make(one_right, settings={"num_iterations": 2, "max_steps": 2})
    trainer.train()
    assert len(trainer.outputs) == 1
    told = [("reward" in line, "loss" in line) for line in trainer.seen]
    assert told == [(True, True), (False, True)]
    assert [len(episodes) for episodes in trainer.episodes] == [8, 0]


def test_an_update_from_two_generation_batches_is_measured_over_both(make: Make) -> None:
    settings = {"gradient_accumulation_steps": 2, "steps_per_generation": 1}
    trainer = make(
        lambda speaker: answers(speaker.number if speaker.group < 2 else 0), settings=settings
    )
    trainer.train()
    assert len(trainer.outputs) == 2
    assert trainer.seen[0]["rollouts"] == 16
    assert trainer.seen[0]["accuracy"] == 0.5


def test_shuffled_rewards_are_the_same_rewards_elsewhere(make: Make) -> None:
    trainer = make(one_right, rollouts={"control": "shuffled-rewards"})
    trainer.train()
    (output,) = trainer.outputs
    scores = [episode.score for episode in trainer.episodes[0]]
    assert sorted(output["score"]) == sorted(scores)
    assert output["score"] != scores


# Dynamic sampling


@pytest.mark.integration
def test_dead_groups_are_replaced_by_live_ones(make: Make) -> None:
    trainer = make(even_notes_live, rollouts={"max_draws": 8.0}, settings={"max_steps": 3})
    trainer.train()
    learned = learned_tasks(trainer)
    assert len(learned) == 6
    assert all(int(task[-1]) % 2 == 0 for task in learned)
    sums = {
        name: sum(line[name] for line in trainer.seen)
        for name in ("drawn_groups", "dropped_groups", "surplus_groups", "masked_groups")
    }
    assert sums["dropped_groups"] > 0
    assert sums["drawn_groups"] - sums["dropped_groups"] - sums["surplus_groups"] == 6
    assert sums["masked_groups"] == 0
    assert any(0 < line["dead_groups"] < 1 for line in trainer.seen)


def test_places_without_a_live_group_are_masked(make: Make) -> None:
    def script(speaker: Speaker) -> list[str]:
        """Only the first group is live."""
        if speaker.group == 0:
            return one_right(speaker)
        return answers(0, call("count", text="a" * (1 + speaker.member % 2)))

    trainer = make(script, rollouts={"max_draws": 2.0})
    trainer.train()
    (output,), (metrics,) = trainer.outputs, trainer.seen
    expected = {"drawn_groups": 4, "dropped_groups": 3, "masked_groups": 1, "sampling_rounds": 2}
    assert {name: metrics[name] for name in expected} == expected
    assert [any(mask) for mask in output["env_mask"]] == [True] * 4 + [False] * 4
    assert metrics["learnt_tokens"] == sum(map(sum, output["env_mask"]))
    assert metrics["grad_norm"] > 0


def test_a_batch_without_a_live_group_moves_nothing(make: Make) -> None:
    def script(speaker: Speaker) -> list[str]:
        return answers(0, *[call("count", text="a")] * (speaker.member % 2))

    trainer = make(script, rollouts={"max_draws": 1.0}, settings={"beta": 0.01})
    trainer.train()
    (metrics,) = trainer.seen
    assert (metrics["masked_groups"], metrics["learnt_tokens"], metrics["grad_norm"]) == (2, 0, 0)
    assert metrics["skipped_updates"] == 1
    assert trainer.recorder.moved(1) == 0.0


# Rollouts that are left out


@pytest.mark.integration
def test_rollouts_that_run_out_are_counted_and_not_learned_from(make: Make) -> None:
    cut = ["I will think about this at length and " * 99]

    def script(speaker: Speaker) -> list[str]:
        return cut if speaker.member == 3 else answers(99 if speaker.member else speaker.number)

    trainer = make(script, settings={"max_completion_length": 60})
    trainer.train()
    (output,) = trainer.outputs
    assert [any(mask) for mask in output["env_mask"]] == [True, True, True, False] * 2
    assert (trainer.seen[0]["unfinished"], trainer.seen[0]["clipped"]) == (0.25, 0.25)
    learning = make(
        script, settings={"max_completion_length": 60, "mask_truncated_completions": False}
    )
    learning.train()
    assert all(any(mask) for mask in learning.outputs[0]["env_mask"])


@pytest.mark.integration
def test_a_rollout_that_a_fault_left_unscored_is_not_learned_from(
    make: Make, notes_folder: Path
) -> None:
    (notes_folder / "note-2").unlink()

    def script(speaker: Speaker) -> list[str]:
        read = call("read", note=speaker.task)
        return answers(99 if speaker.member else speaker.number, *[read] * (speaker.member == 1))

    trainer = make(script, env_kwargs={"folder": notes_folder}, settings={"max_steps": 3}, rows=6)
    trainer.train()
    lost = [
        (score, any(mask))
        for output in trainer.outputs
        for score, mask in zip(output["score"], output["env_mask"], strict=True)
        if score is None
    ]
    assert lost == [(None, False)]
    assert sum(line["faults"] for line in trainer.seen) == 1


@pytest.mark.integration
def test_a_run_whose_environment_keeps_failing_stops_with_the_cause(
    make: Make, notes_folder: Path
) -> None:
    for note in notes_folder.glob("note-*"):
        note.unlink()
    trainer = make(
        lambda speaker: answers(1, call("read", note=speaker.task)),
        env_kwargs={"folder": notes_folder},
        settings={"max_steps": 20},
    )
    with pytest.raises(EnvironmentFault, match=r"step 5: .* 40 of the last 40 .*is gone"):
        trainer.train()


# Tasks


def test_the_data_set_has_each_task_once_or_as_many_rows_as_asked_for() -> None:
    rollouts = Rollouts(NOTES)
    once, many = rollouts.dataset(), rollouts.dataset(15, seed=1)
    tasks = list(once["prompt"])
    assert sorted(tasks) == [*(f"note-{i}" for i in range(6)), "unfair"]
    rounds = list(many["prompt"])
    assert sorted(rounds[:7]) == sorted(rounds[7:14]) == sorted(tasks)
    assert rounds[:7] != rounds[7:14]
    with pytest.raises(ConfigurationError, match="at least 1"):
        rollouts.dataset(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 1}, r"1 rows, but a generation batch needs 2"),
        ({"settings": {"per_device_train_batch_size": 4, "top_p": 0.9}}, "top_p=0.9 has no effect"),
    ],
    ids=["rows", "top_p"],
)
def test_what_would_train_nothing_or_something_else_is_refused(
    make: Make, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(one_right, **options).train()


def test_rollouts_of_a_second_trainer_are_played_with_its_model(
    make: Make, tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    first = make(one_right)
    first.train()
    other = deepcopy(tiny_model)
    other.lm_head.weight.data *= 3
    second = make(one_right, model=other)
    rollouts = second.rollouts = first.rollouts
    second.rollout_func, second.reward_funcs = rollouts, [rollouts.score]
    second.guard_callback._rollouts = rollouts
    second.train()
    assert rollouts._player.model is other
    assert second.seen[0]["mismatch"] == pytest.approx(0.0, abs=1e-6)


def test_tasks_of_another_environment_are_refused(make: Make) -> None:
    rows = Dataset.from_dict({"prompt": ["note-99"] * 4})
    with pytest.raises(ConfigurationError, match=r"'note-99' is not a task of trl-tests/Notes"):
        make(one_right, train_dataset=rows).train()


def test_a_stream_of_rows_is_learned_from_without_dynamic_sampling(make: Make) -> None:
    def stream() -> Any:
        while True:
            yield {"prompt": "note-1"}

    rows = IterableDataset.from_generator(stream)
    trainer = make(one_right, train_dataset=rows)
    trainer.train()
    assert trainer.seen[0]["rollouts"] == 8
    sampling = make(even_notes_live, train_dataset=rows, rollouts={"max_draws": 2.0})
    with pytest.raises(ConfigurationError, match="needs a data set with a length"):
        sampling.train()


def test_tools_of_trl_beside_the_rollouts_are_refused(make: Make) -> None:
    def look() -> str:
        """Look around."""
        return "nothing"

    trainer = make(one_right, tools=[look])
    with pytest.raises(ConfigurationError, match="Remove tools and environment_factory"):
        trainer.train()


def test_a_plain_config_whose_groups_straddle_processes_is_refused(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    rollouts = Rollouts(NOTES)
    settings = {"per_device_train_batch_size": 6, "num_generations": 4, "max_steps": 1}
    settings |= {"gradient_accumulation_steps": 2, "steps_per_generation": 2, "use_cpu": True}
    args = GRPOConfig(str(tmp_path), bf16=False, report_to="none", save_strategy="no", **settings)
    trainer = GRPOTrainer(
        tiny_model,
        args=args,
        processing_class=tokenizer,
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(60),
    )
    prompts = [rollouts.dataset(3)[i % 3]["prompt"] for i in range(6)]
    with pytest.raises(
        ConfigurationError, match="6 rollouts of a generation batch, in groups of 4"
    ):
        rollouts(prompts, trainer)


@pytest.mark.integration
def test_an_evaluation_is_measured_and_changes_nothing_of_the_training(make: Make) -> None:
    finals = []
    for evaluates in (False, True):
        settings = {"max_steps": 2, "per_device_eval_batch_size": 8}
        settings |= {"eval_strategy": "steps", "eval_steps": 1} if evaluates else {}
        rows = Rollouts(NOTES).dataset(4, seed=5)
        trainer = make(one_right, settings=settings, eval_dataset=rows)
        trainer.train()
        finals.append(trainer.recorder.weights[-1])
        told = [line for line in trainer.state.log_history if "eval_toolgym/accuracy" in line]
        assert [line["eval_toolgym/accuracy"] for line in told] == [0.25] * (2 * evaluates)
        assert [line["rollouts"] for line in trainer.seen] == [8, 8]
    plain, evaluated = finals
    for name, weight in plain.items():  # TRL shuffles the rows of a batch by a global generator
        assert torch.allclose(weight, evaluated[name], atol=1e-6)


# Resuming, and models


@pytest.mark.integration
def test_a_run_that_is_taken_up_again_is_the_same_run(make: Make, tmp_path: Path) -> None:
    settings = {"max_steps": 6, "beta": 0.01, "save_strategy": "steps", "save_steps": 1}
    settings |= {"save_total_limit": 9, "lr_scheduler_type": "linear"}
    options = {"settings": settings, "rollouts": {"max_draws": 2.5}, "rows": 12}
    whole = make(even_notes_live, tmp_path / "whole", **options)
    whole.train()
    checkpoint = tmp_path / "whole/checkpoint-3"
    state = json.loads((checkpoint / "trainer_state.json").read_text())
    assert state["stateful_callbacks"]["toolgym"]["rollouts"]["refills"]["walked"] > 0

    resumed = make(even_notes_live, tmp_path / "resumed", **options)
    resumed.train(resume_from_checkpoint=str(checkpoint))

    assert len(resumed.seen) == 3
    for before, after in zip(whole.seen[3:], resumed.seen, strict=True):
        keys = [key for key in before if METRICS[key].source != "clock"]
        assert {key: after[key] for key in keys} == {key: before[key] for key in keys}
    assert same(resumed.recorder.weights[-1], whole.recorder.weights[-1])
    assert same(resumed.recorder.optimizer[-1], whole.recorder.optimizer[-1])


def changed(model: Any, folder: Path) -> Any:
    """A model that was changed in memory; its name leads to what it was before."""
    model.save_pretrained(folder)
    model.config.name_or_path = str(folder)
    torch.manual_seed(1)
    with torch.no_grad():
        model.lm_head.weight += 0.3 * torch.randn_like(model.lm_head.weight)
    return model


@pytest.mark.integration
def test_a_reference_that_is_not_the_policy_is_warned_about(
    make: Make, tiny_model: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = changed(tiny_model, tmp_path / "base")
    trainer = make(one_right, model=model, settings={"beta": 0.01})
    trainer.train()
    assert "the reference model differs from the policy" in caplog.text
    caplog.clear()
    model.save_pretrained(tmp_path / "warm")
    model.config.name_or_path = str(tmp_path / "warm")
    trainer = make(one_right, model=model, settings={"beta": 0.01})
    trainer.train()
    assert trainer.seen[0]["kl"] == 0.0
    assert "reference model" not in caplog.text


def adapter() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")


@pytest.mark.integration
def test_under_lora_rollouts_are_the_adapters_and_a_roll_back_restores_it(
    make: Make, tiny_model: Any, tmp_path: Path
) -> None:
    def script(speaker: Speaker) -> list[str]:
        return [BROKEN] if speaker.step == 3 else one_right(speaker)

    trainer = make(
        script,
        model=changed(tiny_model, tmp_path / "base"),
        peft_config=adapter(),
        settings={"max_steps": 3, "learning_rate": 1e-2, "beta": 0.01},
        guards={"errors": 0.5, "actions": {"success": [], "answering": []}},
    )
    trainer.train()
    states = trainer.recorder
    assert trainer.seen[0]["kl"] == pytest.approx(0.0, abs=1e-6)  # the model below the adapter
    assert trainer.seen[1]["kl"] > 1e-6
    assert max(line["mismatch"] for line in trainer.seen[:2]) < 1e-6
    assert states.moved(2) > 0
    assert trainer.seen[2]["roll_backs"] == 1
    assert same(states.weights[3], states.weights[1])
    assert same(states.optimizer[3]["state"], states.optimizer[1]["state"])


def test_the_model_itself_generates_where_no_script_does(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """The log-probabilities at sampling are those of TRL's forward pass."""
    rollouts = Rollouts(NOTES, max_draws=None)
    from adapters.trl import GuardCallback, grpo_config
    from tests.adapters.trl.scripted_rollouts import SETTINGS

    seen: list[Any] = []
    callback = GuardCallback(rollouts, on_step=lambda *told: seen.append(told))
    trainer = GRPOTrainer(
        tiny_model,
        args=grpo_config(
            output_dir=str(tmp_path),
            **{**SETTINGS, "max_completion_length": 12, "temperature": 0.7},
            mask_truncated_completions=False,
        ),
        processing_class=tokenizer,
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(8),
        callbacks=[callback],
    )
    trainer.train()
    ((_, metrics, episodes),) = seen
    assert metrics["mismatch"] < 1e-6
    assert metrics["unfinished"] > 0.5
    assert len(episodes) == 8
    assert END not in episodes[0].task_id
