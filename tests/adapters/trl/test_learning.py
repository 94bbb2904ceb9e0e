"""What a step learns from in the corners: faults, several batches, evaluation, every loss."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from datasets import Dataset, IterableDataset

from adapters.trl import (
    FaultStop,
    StableGRPOConfig,
    StableGRPOTrainer,
    environment_factory,
    training_dataset,
)
from adapters.trl.config import LOSSES
from tests.adapters.conftest import NotesEnv
from tests.adapters.trl.scripted_trl import (
    NOTES,
    SETTINGS,
    always,
    call,
    recorded,
    scripted,
)
from toolgym import ConfigurationError, Task, tool

pytestmark = pytest.mark.torch

Make = Callable[..., Any]


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    """A fresh one for each test."""
    return deepcopy(read_tokenizer)


@pytest.fixture
def make(tiny_model: Any, tokenizer: Any, tmp_path: Path) -> Make:
    """Makes a trainer without dynamic sampling that keeps its numbers and its batches."""

    def made(script: Any, **options: Any) -> Any:
        seen: list[dict[str, float]] = []
        settings = {"beta": 0.0, "dynamic_sampling": False, **options.pop("settings", {})}
        options.setdefault("on_metrics", lambda step, numbers: seen.append(numbers))
        model = options.pop("model", None) or deepcopy(tiny_model)
        trainer = scripted(model, tokenizer, tmp_path, script, settings=settings, **options)
        trainer.seen, trainer.made, trainer.recorder = seen, [], recorded(trainer)
        make_batch = trainer._generate_and_score_completions

        def kept(inputs: Any) -> Any:
            trainer.made.append(make_batch(inputs))
            return trainer.made[-1]

        trainer._generate_and_score_completions = kept
        return trainer

    return made


def number_of(row: dict[str, Any]) -> int:
    return int(row["task_id"].rpartition("-")[2])


def right_first(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """The first rollout of every four is right."""
    return [
        [call("answer", value=99 if place % 4 else 10 + number_of(row))]
        for place, row in enumerate(inputs)
    ]


def learnt_tokens(batch: dict[str, Any]) -> list[int]:
    tokens: list[int] = (batch["completion_mask"] * batch["tool_mask"]).sum(1).tolist()
    return tokens


def test_a_rollout_that_a_fault_left_unscored_is_not_learnt_from(make: Make) -> None:
    """Not by the policy's gain, which was 0 anyway, and not by the penalty or the count either."""
    faulty = [call("explode"), "I go on.<|im_end|>"]
    right, wrong = [call("answer", value=12)], [call("answer", value=0)]
    settings = {"beta": 0.01, "shuffle_dataset": False, "mask_truncated_completions": False}
    rows = training_dataset(NOTES).filter(lambda row: row["task_id"] == "note-2")
    trainer = make(always(faulty, right, wrong, wrong), dataset=rows, settings=settings)
    trainer.train()
    (batch,) = trainer.made
    assert [bool(tokens) for tokens in learnt_tokens(batch)] == [False, True, True, True]
    assert batch["num_items_in_batch"] == sum(learnt_tokens(batch))
    assert batch["advantages"][0] == 0.0
    assert trainer.seen[0]["faults"] == 1


@pytest.mark.integration
def test_a_group_nobody_of_whom_is_learnt_from_changes_no_statistics(make: Make) -> None:
    """It ran out of calls, some of its rollouts further than others."""

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        further = [call("read", note="x")] * 9
        lost = [further if place % 2 else [call("count", text="a")] * 9 for place in range(4)]
        return [*right_first(batch, inputs[:4]), *lost][: len(inputs)]

    settings = {"shuffle_dataset": False, "max_tool_calling_iterations": 2}
    alone = make(script, settings=settings)
    beside = make(script, settings={**settings, "per_device_train_batch_size": 8})
    alone.train()
    beside.train()
    assert learnt_tokens(beside.made[0])[4:] == [0] * 4
    assert beside.seen[0]["unfinished"] == 0.5
    assert beside.seen[0]["dead_groups"] == 0.0
    found = beside.made[0]["advantages"]
    assert torch.equal(found[:4], alone.made[0]["advantages"])
    assert found[4:].abs().max() == 0


def test_a_group_nobody_of_whom_is_learnt_from_takes_no_place_of_a_live_one(make: Make) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        further = [call("read", note="x")] * 9
        lost = [further if place % 2 else [call("count", text="a")] * 9 for place in range(4)]
        return lost if batch == 1 else right_first(batch, inputs)

    settings = {"dynamic_sampling": True, "max_tool_calling_iterations": 2}
    trainer = make(script, settings=settings)
    trainer.train()
    (numbers,) = trainer.seen
    assert (numbers["drawn_groups"], numbers["masked_groups"]) == (2, 0)
    assert numbers["dropped_groups"] == 1
    assert all(learnt_tokens(trainer.made[0]))


def observed(trainer: Any) -> list[dict[str, float]]:
    """Filled with what the guards are told, step by step."""
    told: list[dict[str, float]] = []
    observe = trainer._guard_callback.guards.observe

    def noted(step: int, numbers: dict[str, float]) -> Any:
        told.append(dict(numbers))
        return observe(step, numbers)

    trainer._guard_callback.guards.observe = noted
    return told


@pytest.mark.integration
def test_a_step_that_learns_from_two_generation_batches_is_judged_by_both(make: Make) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        right = [[call("answer", value=10 + number_of(row))] for row in inputs]
        return right if batch % 2 else [[call("answer", value=0)] for _ in inputs]

    settings = {"gradient_accumulation_steps": 2, "steps_per_generation": 1, "max_steps": 2}
    trainer = make(script, settings=settings)
    told = observed(trainer)
    trainer.train()
    assert trainer.batches == 4
    assert [(line["accuracy"], line["turns"]) for line in told] == [(0.5, 8.0)] * 2
    assert [(line["accuracy"], line["turns"]) for line in trainer.seen] == [(0.5, 8.0)] * 2
    assert all(line["rollout_seconds"] < 60 for line in trainer.seen)
    assert all(line["update_seconds"] > 0 for line in trainer.seen)


@pytest.mark.integration
def test_an_update_taken_in_two_parts_is_the_update_of_one(make: Make) -> None:
    one, two = (
        make(
            right_first,
            settings={
                "per_device_train_batch_size": 16 // parts,
                "gradient_accumulation_steps": parts,
                "shuffle_dataset": False,
                "optim": "sgd",
            },
        )
        for parts in (1, 2)
    )
    one.train()
    two.train()
    first, second = (trainer.recorder.weights[1] for trainer in (one, two))
    assert one.recorder.moved(1) > 1e-5
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < 1e-6
    for key in ("loss", "grad_norm", "entropy", "learnt_tokens"):
        assert two.seen[0][key] == pytest.approx(one.seen[0][key], rel=1e-4), key


def half_dead(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """In groups of odd notes nobody is right."""
    live = [number_of(row) % 2 == 0 for row in inputs]
    right = right_first(batch, inputs)
    return [
        said if alive else [call("answer", value=99)]
        for said, alive in zip(right, live, strict=True)
    ]


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(
            loss, marks=pytest.mark.integration if loss == "cispo" else pytest.mark.nightly
        )
        for loss in LOSSES
    ],
)
def test_each_of_trls_losses_learns_from_refilled_and_reused_batches(make: Make, loss: str) -> None:
    settings: dict[str, Any] = {
        "loss_type": loss,
        "dynamic_sampling": True,
        "max_draws": 4.0,
        "beta": 0.02,
        "steps_per_generation": 2,
        "num_iterations": 2,
        "max_steps": 3,
        "bf16": loss == "dapo",
    }
    if loss == "cispo":
        settings["epsilon_high"] = 5.0
    if loss == "luspo":
        settings["importance_sampling_level"] = "sequence"
    trainer = make(half_dead, settings=settings)
    trainer.train()
    assert trainer.state.global_step == 3
    assert trainer.recorder.moved(3, since=0) > 0
    assert all(weight.isfinite().all() for weight in trainer.recorder.weights[3].values())
    assert trainer.seen[0]["drawn_groups"] >= 2
    assert trainer.seen[0]["skipped_updates"] == 0
    assert trainer.seen[2]["kl"] >= 0.0


def test_the_losses_are_those_of_the_installed_trl() -> None:
    from trl import GRPOConfig

    documented = str(GRPOConfig.__doc__).split("loss_type (`str`")[1].split("mask_truncated")[0]
    named = {part.split('"`')[0] for part in documented.split('- `"')[1:]}
    assert named == set(LOSSES)


def test_an_evaluation_is_measured_and_changes_nothing_of_the_training(make: Make) -> None:
    settings = {
        "dynamic_sampling": True,
        "max_draws": 4.0,
        "max_steps": 2,
        "eval_strategy": "steps",
        "eval_steps": 1,
        "per_device_eval_batch_size": 2,
        "num_generations_eval": 2,
    }
    rows = training_dataset(NOTES, n=2)
    trainer = make(right_first, settings=settings, eval_dataset=rows)
    told = observed(trainer)
    trainer.train()
    evaluated = [line for line in trainer.state.log_history if "eval_loss" in line]
    assert len(evaluated) == len(trainer.seen) == len(told) == 2
    assert [line["eval_toolgym/accuracy"] for line in evaluated] == [0.5] * 2
    assert [line["accuracy"] for line in told] == [0.25] * 2
    assert trainer.batches == 2 + 2 * 2
    assert "eval_toolgym/drawn_groups" not in evaluated[0]


def test_tasks_of_another_split_are_refused_before_every_rollout_is_lost(make: Make) -> None:
    prompt = training_dataset(NOTES)[0]["prompt"]
    rows = Dataset.from_list([{"prompt": prompt, "task_id": f"dev-{i}"} for i in range(2)])
    for given in (rows, {"held-out": rows}):
        with pytest.raises(ConfigurationError, match=r"eval_dataset names 2 tasks .*'dev-0'"):
            make(right_first, eval_dataset=given)
    with pytest.raises(ConfigurationError, match=r"train_dataset names 2 .*split.*toolgym eval"):
        make(right_first, dataset=rows, settings={"num_generations": 2})


def test_a_stream_of_rows_is_learnt_from_without_dynamic_sampling(make: Make) -> None:
    rows = training_dataset(NOTES)
    stream = IterableDataset.from_generator(lambda: iter(rows))
    trainer = make(right_first, dataset=stream, settings={"max_steps": 2})
    trainer.train()
    assert trainer.recorder.moved(2) > 0
    assert [line["accuracy"] for line in trainer.seen] == [0.25, 0.25]
    with pytest.raises(ConfigurationError, match="a data set with a length"):
        make(right_first, dataset=stream, settings={"dynamic_sampling": True})


@pytest.mark.parametrize("by", ["instance", pytest.param("path", marks=pytest.mark.integration)])
def test_a_trainer_made_without_build_trainer_is_as_safe(
    tiny_model: Any, tokenizer: Any, make_tokenizer: Any, tmp_path: Path, by: str
) -> None:
    """Control tokens are text, calls are bounded, faults end the run, a template may be one's own.

    TRL looks for the response format of a tokenizer that it loads itself, among those it knows.
    """
    for part in (tiny_model, tokenizer):
        part.save_pretrained(tmp_path / "base")
    options = {}
    if by == "instance":
        tokenizer.chat_template = make_tokenizer("qwen3_training").chat_template + "{# mine #}"
        options["processing_class"] = tokenizer
    args = StableGRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, gradient_accumulation_steps=1, **SETTINGS_OF_FOUR
    )
    environment = environment_factory(NOTES)
    environment().reset(task_id="note-1")  # the example environment is in use
    trainer = StableGRPOTrainer(
        tiny_model if by == "instance" else str(tmp_path / "base"),
        args=args,
        train_dataset=training_dataset(NOTES),
        environment_factory=environment,
        **options,
    )
    assert trainer.chat_template_kwargs == {"sanitize_control_tokens": True}
    assert trainer.max_tool_calling_iterations == environment._sample().step_limit + 1
    assert args.chat_template_kwargs is None
    stops = [each for each in trainer.callback_handler.callbacks if isinstance(each, FaultStop)]
    assert len(stops) == 1
    trainer.train()
    assert trainer.state.global_step == 1


SETTINGS_OF_FOUR = {**SETTINGS, "max_completion_length": 24, "beta": 0.01, "max_draws": 1.0}


def test_a_reference_that_would_be_passed_over_or_is_not_there_is_told(
    make: Make, tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    for part in (tiny_model, tokenizer):
        part.save_pretrained(tmp_path / "base")
    settings = {"beta": 0.01}
    with pytest.raises(ConfigurationError, match="load the model yourself"):
        make(
            right_first, model=str(tmp_path / "base"), reference=tmp_path / "far", settings=settings
        )
    with pytest.raises(ConfigurationError, match=r"or the reference '.*far' cannot be loaded"):
        make(right_first, reference=tmp_path / "far", settings=settings)
    with pytest.raises(ConfigurationError, match="the model cannot be loaded"):
        make(right_first, model=str(tmp_path / "nowhere"))


def test_a_trained_adapter_is_held_to_what_it_was(make: Make, tiny_model: Any) -> None:
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(tiny_model, lora)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight += 0.1 * torch.randn_like(weight)
    settings = {"beta": 0.01, "max_steps": 2, "learning_rate": 1e-2}
    trainer = make(right_first, model=model, settings=settings)
    trainer.train()
    kl = [line["kl"] for line in trainer.seen]
    assert kl[0] == pytest.approx(0.0, abs=1e-6)
    assert kl[1] > 1e-6


class LongEnv(NotesEnv):
    """Whose first instance is told more than there is room for."""

    instances = 0

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        type(self).instances += 1
        self.place = type(self).instances

    @tool
    def read(self, note: str) -> str:
        """Read one note.

        Args:
            note: The note's name.
        """
        return "word " * (900 if self.place == 1 else 1)


class DiceEnv(NotesEnv):
    """Whose question is drawn by chance."""

    def begin(self, task: Task) -> str:
        return f"{task.question} Think of {self.np_random.integers(10**9)}."


LONG, DICE = "trl-tests/Long-v0", "trl-tests/Dice-v0"
for env_id, env_class in ((LONG, LongEnv), (DICE, DiceEnv)):
    if env_id not in gym.registry:
        gym.register(id=env_id, entry_point=env_class)


def test_a_twin_that_was_told_something_else_does_not_keep_the_others_talking(make: Make) -> None:
    LongEnv.instances = 0
    said = [call("read", note="x"), call("answer", value=1), "never said"]
    trainer = make(always(said, said, said, said), env_id=LONG)
    trainer.train()
    assert trainer.generated == [4, 3]
    assert all(messages[-1]["content"] == "" for messages in trainer.outcome[1][1:])


@pytest.mark.integration
def test_what_an_environment_draws_by_chance_is_the_same_in_a_group_and_in_the_next_run(
    make: Make,
) -> None:
    asked = []
    for _ in range(2):
        trainer = make(right_first, env_id=DICE, settings={"shuffle_dataset": False})
        trainer.train()
        asked += [prompt[-1]["content"] for prompt in trainer.prompts]
    assert len(asked) == 8
    assert len(set(asked)) == 1
