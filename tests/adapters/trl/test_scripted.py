"""`environment_factory` in TRL's own loop, where only the words of the model are scripted."""

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from datasets import Dataset
from trl import GRPOConfig

from adapters.trl import FaultStop, environment_factory, training_dataset
from tests.adapters.trl.scripted_trl import (
    NOTES,
    SETTINGS,
    Scripted,
    always,
    call,
    logged,
)
from toolgym import EnvironmentFault, policies, registration
from toolgym.rollout import play

pytestmark = pytest.mark.torch

EXPLORE = "sqlgym/Explore-v0"


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    """A fresh one for each test."""
    return deepcopy(read_tokenizer)


@pytest.fixture
def run(tiny_model: Any, tokenizer: Any, tmp_path_factory: Any) -> Any:
    """Trains a plain GRPOTrainer by a script; returns it and its environment class."""

    def train(script: Any, env_id: str = NOTES, rows: Any = None, **options: Any) -> Any:
        settings = {**SETTINGS, **options.pop("settings", {})}
        environment = environment_factory(env_id, **options)
        config = GRPOConfig(
            output_dir=str(tmp_path_factory.mktemp("trl")),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            **settings,
        )
        trainer = Scripted(
            model=tiny_model,
            processing_class=tokenizer,
            args=config,
            train_dataset=rows or training_dataset(env_id, **options).filter(is_playable),
            environment_factory=environment,
            callbacks=[FaultStop(environment)],
        )
        trainer.script = script
        trainer.train()
        return trainer

    return train


def is_playable(row: dict[str, Any]) -> bool:
    return bool(row["task_id"] != "unfair")


def answers(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Two rollouts of each four answer rightly; every call carries arguments nobody asked for."""
    extras = {"sql": None, "table_name": None, "limit": 5}
    rollouts = []
    for place, row in enumerate(inputs):
        number = 10 + int(row["task_id"].rpartition("-")[2])
        said = number if place % 2 else 99
        rollouts.append(
            [
                call("read", note=row["task_id"], **extras),
                call("answer", value=said, sql=None, table_name=None),
            ]
        )
    return rollouts


def padded_experts(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """The database expert's calls, each with every argument of every tool; half answer wrongly."""
    env = registration.make(EXPLORE, dataset="tiny")
    rollouts = []
    for place, row in enumerate(inputs):
        play(env, policies.ExpertPolicy(), task_id=row["task_id"])
        said = []
        for turn in env.episode.turns:
            for each in turn.calls:
                padding = {"sql": None, "table_name": None, "value": None}
                arguments = {**padding, **each.arguments}
                if each.name == "answer" and place % 2:
                    arguments["value"] = "no such thing"
                said.append(call(each.name, **arguments))
        rollouts.append(said)
    return rollouts


@pytest.mark.integration
def test_padded_calls_to_a_real_database_fail_in_strict_parsing_only(run: Any) -> None:
    settings = {"max_completion_length": 1500}
    for parsing, failures in (("lenient", 0.0), ("strict", 1.0)):
        options = {"dataset": "tiny", "parsing": parsing}
        rows = training_dataset(EXPLORE, dataset="tiny", n=4)
        made = run(padded_experts, env_id=EXPLORE, settings=settings, rows=rows, **options)
        rewards = made._logs["rewards"]["ExploreEnvironment"]
        assert logged(made, "tools/failure_frequency") == [failures]
        assert (logged(made, "reward_std")[0] > 0) == (failures == 0.0)
        assert (logged(made, "grad_norm")[0] > 0) == (failures == 0.0)
        assert (len(set(rewards)) == 1) == (failures == 1.0)


def test_calls_with_null_extras_are_run_and_the_reward_has_a_gradient(run: Any) -> None:
    """In two groups, each of which shares one question."""
    trainer = run(answers, settings={"per_device_train_batch_size": 8})
    asked = [prompt[-1]["content"] for prompt in trainer.prompts]
    assert len(set(asked[:4])) == len(set(asked[4:])) == 1
    assert asked[0] != asked[4]
    assert asked[0].startswith("Which number is in note")
    assert logged(trainer, "tools/failure_frequency") == [0.0]
    assert logged(trainer, "reward_std")[0] > 0
    assert logged(trainer, "grad_norm")[0] > 0


def test_strict_parsing_is_the_wall_where_nothing_can_be_learned(run: Any) -> None:
    trainer = run(answers, parsing="strict")
    assert logged(trainer, "tools/failure_frequency") == [1.0]
    assert logged(trainer, "reward_std") == [0.0]
    assert logged(trainer, "grad_norm") == [0.0]
    assert len(set(trainer._logs["rewards"]["NotesEnvironment"])) == 1


def test_without_a_data_set_a_group_still_shares_one_question(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    config = GRPOConfig(
        output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", **SETTINGS
    )
    trainer = Scripted(
        model=tiny_model,
        processing_class=tokenizer,
        args=config,
        environment_factory=environment_factory(NOTES),
    )
    trainer.script = always(*[[]] * 4)
    trainer.train()
    assert len({prompt[-1]["content"] for prompt in trainer.prompts}) == 1


def test_control_tokens_in_a_tools_output_stay_text(run: Any) -> None:
    trainer = run(answers)
    tool_mask, _, completion_ids = trainer.outcome[:3]
    tokenizer = trainer.processing_class
    opened = tokenizer.convert_tokens_to_ids("<|im_start|>")
    for mask, ids in zip(tool_mask, completion_ids, strict=True):
        shown = [token for token, own in zip(ids, mask, strict=True) if not own]
        assert tokenizer.decode(shown).count("The number is") == 1
        assert (
            shown.count(opened) == 4
        )  # two results, each in a user turn, each before an assistant's
        assert shown.count(tokenizer.eos_token_id) == 2


@pytest.mark.integration
def test_a_database_that_vanishes_costs_its_rollouts_and_the_run_goes_on(
    run: Any, notes_folder: Path
) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        gone = notes_folder / inputs[0]["task_id"]
        gone.unlink(missing_ok=batch == 2) if batch == 2 else None
        return answers(batch, inputs)

    trainer = run(script, folder=notes_folder, settings={"max_steps": 3})
    assert trainer.state.global_step == 3
    rewards = logged(trainer, "rewards/NotesEnvironment/mean")
    assert [reward is None for reward in rewards] == [False, True, False]
    assert logged(trainer, "grad_norm")[1] == 0.0
    assert logged(trainer, "grad_norm")[2] > 0.0


@pytest.mark.integration
def test_a_run_without_its_data_stops_and_says_why(run: Any, notes_folder: Path) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        for note in notes_folder.iterdir():
            note.unlink()
        return answers(batch, inputs)

    with pytest.raises(
        EnvironmentFault, match=r"stopped at step 5: .* in 20 of the last 20.* gone"
    ):
        run(script, folder=notes_folder, settings={"max_steps": 40})


def test_tasks_that_cannot_be_played_are_left_out_and_counted(run: Any) -> None:
    prompt = training_dataset(NOTES)[0]["prompt"]
    ids = ["note-1", "nowhere"] * 2
    rows = Dataset.from_list([{"prompt": prompt, "task_id": task_id} for task_id in ids])
    right = [call("answer", value=11)]
    settings = {"per_device_train_batch_size": 8, "num_generations": 2, "shuffle_dataset": False}
    trainer = run(always(*[right, [call("answer", value=0)]] * 4), rows=rows, settings=settings)
    rewards = list(trainer._logs["rewards"]["NotesEnvironment"])
    assert rewards[:2] == rewards[4:6] == [1.0, 0.0]
    assert all(math.isnan(reward) for reward in rewards[2:4] + rewards[6:])
    assert len(type(trainer.environments[0])._tally.faults) == 4
    assert logged(trainer, "grad_norm")[0] > 0
