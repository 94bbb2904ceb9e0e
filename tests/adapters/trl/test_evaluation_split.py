"""TRL evaluates on another split: in its own environments, and with no trace in training."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch

from adapters.trl import build_trainer, environment_factory, training_dataset
from adapters.trl.evaluation import own_random_numbers
from tests.adapters.trl.scripted_trl import NOTES, call, scripted
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

HELD_OUT = {"size": 9, "step_limit": 4}
EVERY_STEP: dict[str, Any] = {
    "max_steps": 3,
    "eval_strategy": "steps",
    "eval_steps": 1,
    "per_device_eval_batch_size": 2,
    "num_generations_eval": 2,
}


def held_out_rows() -> Any:
    """The tasks that the training's environment has not: notes 6 to 8."""
    rows = training_dataset(NOTES, **HELD_OUT)
    return rows.filter(lambda row: int(row["task_id"][5:]) > 5)


def number_of(row: dict[str, Any]) -> int:
    return int(row["task_id"].rpartition("-")[2])


def right_on_note_7_from_the_third_batch(batch: int, inputs: list[dict[str, Any]]) -> Any:
    """In training the first is right; in evaluation whoever has note 7, once training has begun."""
    said = []
    for place, row in enumerate(inputs):
        number = number_of(row)
        right = place == 0 if number < 6 else number == 7 and batch > 6
        said.append([call("answer", value=10 + number if right else 99)])
    return said


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    return deepcopy(read_tokenizer)


def make(model: Any, tokenizer: Any, folder: Path, **options: Any) -> Any:
    settings = {**EVERY_STEP, "beta": 0.0, **options.pop("settings", {})}
    options.setdefault("eval_dataset", held_out_rows())
    options.setdefault("eval_env_kwargs", HELD_OUT)
    script = right_on_note_7_from_the_third_batch
    return scripted(model, tokenizer, folder, script, settings=settings, **options)


@pytest.mark.integration
def test_rows_of_another_split_are_played_in_its_own_environments(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    told: list[dict[str, float]] = []
    trainer = make(
        tiny_model, tokenizer, tmp_path, on_metrics=lambda step, numbers: told.append(numbers)
    )
    trainer.train()

    evaluated = [line for line in trainer.state.log_history if "eval_loss" in line]
    assert [line["eval_toolgym/accuracy"] for line in evaluated][-1] == pytest.approx(1 / 3)
    assert all(line["eval_toolgym/faults"] == 0 for line in evaluated)
    assert all(line["eval_reward"] is not None for line in evaluated)
    assert "eval_toolgym/drawn_groups" not in evaluated[0]
    assert [line["accuracy"] for line in told] == [0.25] * 3
    training, evaluation = type(trainer._environment_pool[None][0]), trainer._evaluation.environment
    assert training._env_kwargs == {}
    assert evaluation._env_kwargs == HELD_OUT
    assert (training._tally.rollouts, evaluation._tally.rollouts) == (12, 18)


@pytest.mark.integration
def test_the_best_checkpoint_by_a_held_out_figure_is_loaded_at_the_end(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    settings = {
        "load_best_model_at_end": True,
        "metric_for_best_model": "toolgym/accuracy",
        "save_strategy": "steps",
        "save_steps": 1,
    }
    trainer = make(tiny_model, tokenizer, tmp_path, settings=settings)
    trainer.train()

    line = [each for each in trainer.state.log_history if "eval_loss" in each]
    best = max(line, key=lambda each: each["eval_toolgym/accuracy"])
    assert trainer.state.best_metric == best["eval_toolgym/accuracy"] > 0
    assert trainer.state.best_model_checkpoint == str(tmp_path / f"checkpoint-{best['step']}")
    saved = type(tiny_model).from_pretrained(trainer.state.best_model_checkpoint)
    for name, weight in saved.state_dict().items():
        assert torch.equal(weight, trainer.model.state_dict()[name])


@pytest.mark.nightly
def test_what_is_sampled_in_training_is_the_same_with_an_evaluation_and_without(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """With real generation, which draws from the random numbers that evaluation draws from too."""
    logs = []
    for evaluates in (False, True):
        options: dict[str, Any] = {}
        settings = {"max_steps": 2, "num_generations": 2, "per_device_train_batch_size": 4}
        settings |= {"max_completion_length": 12, "gradient_accumulation_steps": 1}
        if evaluates:
            settings |= {**EVERY_STEP, "max_steps": 2}
            options = {"eval_dataset": held_out_rows(), "eval_env_kwargs": HELD_OUT}
        trainer = build_trainer(
            deepcopy(tiny_model),
            deepcopy(tokenizer),
            NOTES,
            config={"output_dir": str(tmp_path), "disable_tqdm": True, **settings},
            **options,
        )
        trainer.train()
        lines = [line for line in trainer.state.log_history if "loss" in line]
        logs.append([(each["entropy"], each["grad_norm"], each["num_tokens"]) for each in lines])
    assert logs[0] == logs[1]


def test_random_numbers_go_on_after_an_evaluation() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    drawn = []
    for _ in range(2):
        with own_random_numbers(5, torch.device("cpu")):
            drawn.append(torch.rand(2))
    assert torch.equal(*drawn)
    assert torch.equal(torch.rand(3), expected)


def test_tasks_that_the_evaluation_has_not_are_refused(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    rows = training_dataset(NOTES, size=12).filter(lambda row: row["task_id"] == "note-11")
    with pytest.raises(ConfigurationError, match=r"eval_dataset names 1 .*eval_env_kwargs"):
        make(tiny_model, tokenizer, tmp_path, eval_dataset=rows)


def test_an_evaluation_with_other_tools_is_refused(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    other = environment_factory(NOTES, parsing="strict")
    with pytest.raises(ConfigurationError, match="with the same tools and parsing"):
        make(tiny_model, tokenizer, tmp_path, eval_env_kwargs=None, evaluation_factory=other)
