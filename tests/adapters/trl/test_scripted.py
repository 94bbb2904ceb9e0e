"""The real trainers of TRL and ours, in which only the words of the model come from a script."""

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from datasets import Dataset
from trl import GRPOConfig

from adapters.trl import (
    FaultStop,
    build_trainer,
    environment_factory,
    sft_dataset,
    training_dataset,
)
from tests.adapters.trl.scripted_trl import (
    END,
    NOTES,
    SETTINGS,
    Scripted,
    ScriptedTools,
    always,
    call,
    logged,
)
from toolgym import ConfigurationError, EnvironmentFault, policies, registration
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
            train_dataset=training_dataset(env_id, **options) if rows is None else rows,
            environment_factory=environment,
            callbacks=[FaultStop(environment)],
        )
        trainer.script = script
        trainer.train()
        return trainer

    return train


@pytest.fixture
def build(tiny_model: Any, tokenizer: Any, tmp_path_factory: Any) -> Any:
    """Trains what build_trainer makes by a script."""

    def train(script: Any, env_id: str = NOTES, **options: Any) -> Any:
        settings = {**SETTINGS, **options.pop("settings", {})}
        settings["output_dir"] = str(tmp_path_factory.mktemp("trl"))
        trainer = build_trainer(
            options.pop("model", tiny_model),
            tokenizer,
            env_id,
            config=settings,
            trainer_class=ScriptedTools,
            **options,
        )
        trainer.script = script
        trainer.train()
        return trainer

    return train


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
def test_padded_calls_to_a_real_database_fail_in_strict_parsing_only(build: Any) -> None:
    settings = {"max_completion_length": 1500}
    for parsing, failures in (("lenient", 0.0), ("strict", 1.0)):
        options = {"env_kwargs": {"dataset": "tiny", "parsing": parsing}}
        rows = training_dataset(EXPLORE, dataset="tiny", n=4)
        made = build(padded_experts, env_id=EXPLORE, settings=settings, dataset=rows, **options)
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


def test_strict_parsing_is_the_wall_where_nothing_can_be_learnt(run: Any) -> None:
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
    ids = ["note-1", "unfair", "note-1", "nowhere"]
    rows = Dataset.from_list([{"prompt": prompt, "task_id": task_id} for task_id in ids])
    right = [call("answer", value=11)]
    settings = {"per_device_train_batch_size": 8, "num_generations": 2, "shuffle_dataset": False}
    trainer = run(always(*[right, [call("answer", value=0)]] * 4), rows=rows, settings=settings)
    rewards = list(trainer._logs["rewards"]["NotesEnvironment"])
    assert rewards[:2] == rewards[4:6] == [1.0, 0.0]
    assert all(math.isnan(reward) for reward in rewards[2:4] + rewards[6:])
    assert type(trainer.environments[0])._tally.faults == 4
    assert logged(trainer, "grad_norm")[0] > 0


def test_build_trainer_tells_the_numbers_and_some_episodes_of_every_step(build: Any) -> None:
    steps: list[tuple[int, dict[str, float]]] = []
    episodes: list[tuple[int, list[dict[str, Any]]]] = []
    build(
        answers,
        on_metrics=lambda step, numbers: steps.append((step, numbers)),
        on_rollouts=lambda step, records: episodes.append((step, records)),
    )
    assert [step for step, _ in steps] == [step for step, _ in episodes] == [1]
    numbers = steps[0][1]
    known = {"accuracy": 0.5, "answered": 1.0, "validity": 1.0, "dead_groups": 0.0, "faults": 0.0}
    assert {key: numbers[key] for key in known} == known
    assert numbers["zero_variance_groups"] == numbers["tool_failures"] == numbers["clipped"] == 0.0
    assert numbers["repairs_per_call"] == 1.5
    assert numbers["reward"] == pytest.approx(0.58, abs=0.01)
    assert {"loss", "grad_norm", "entropy", "learning_rate", "completion_length"} < numbers.keys()
    first = episodes[0][1][1]
    assert first["correct"]
    assert first["turns"][0]["repairs"] == ["dropped_null", "dropped_argument"]
    assert json.loads(json.dumps(episodes)) == [list(pair) for pair in episodes]


def test_the_rollout_ends_with_the_episode_and_the_added_token_is_not_trained_on(
    build: Any,
) -> None:
    long = [call("read", note="note-0"), call("answer", value=1), "never said"]
    short = [call("answer", value=1), call("answer", value=2)]
    trainer = build(always(long, short, short, short))
    assert trainer.generated == [4, 1]
    tool_mask, completions, completion_ids = trainer.outcome[:3]
    for mask, messages, ids in zip(tool_mask, completions, completion_ids, strict=True):
        assert messages[-1]["content"] == ""
        assert ids[-1] == trainer.processing_class.eos_token_id
        assert mask[-1] == 0
        assert len(mask) == len(ids)
    assert sum(tool_mask[1]) == len(trainer.processing_class(short[0])["input_ids"])


def test_a_broken_call_is_mended_or_told_what_is_wrong_and_a_misspelt_tool_found(
    build: Any,
) -> None:
    mended = f"<tool_call>{{'name': 'read', 'arguments': {{'note': 'a'}}</tool_call>{END}"
    broken = f"<tool_call>\nread the first note\n</tool_call>{END}"
    twins = f"{call('read', note='a').removesuffix(END)}\n{broken}"
    last = [call("answer", value=1)]
    misspelt = [call("Read_Note", note="a"), call("submit", value=1)]
    rollouts = always([mended, *last], [broken, *last], [twins, *last], misspelt)
    trainer = build(rollouts, settings={"max_completion_length": 800})
    results = [[m["content"] for m in told if m["role"] == "tool"] for told in trainer.outcome[1]]
    assert "The number is" in results[0][0]
    assert results[1][0].startswith("error[")
    assert "The number is" in results[2][0]
    assert results[2][1].startswith("error[")
    assert "The number is" in results[3][0]
    assert [len(told) for told in results] == [2, 2, 3, 2]
    assert all(environment._playing.episode.ledger.answered for environment in trainer.environments)


@pytest.mark.integration
def test_the_control_deals_the_same_rewards_to_random_rollouts(build: Any) -> None:
    settings = {"per_device_train_batch_size": 16, "num_generations": 4}

    def dealt(control: str | None) -> list[float]:
        torch.manual_seed(0)
        trainer = build(answers, control=control, settings=settings)
        return list(trainer._logs["rewards"]["NotesEnvironment"])

    plain, shuffled = dealt(None), dealt("shuffled-rewards")
    assert sorted(shuffled) == sorted(plain)
    assert shuffled != plain
    assert dealt("shuffled-rewards") == shuffled


def test_completions_can_be_logged_though_answers_have_many_types(build: Any) -> None:
    values: list[Any] = [1, "one", [1, 2], True]
    rollouts = [
        [call("explode") if value is True else call("answer", value=value)] for value in values
    ]
    trainer = build(always(*rollouts), settings={"log_completions": True})
    assert list(Path(trainer.args.output_dir).glob("completions/*.parquet"))


def test_a_data_set_that_is_made_has_the_tasks_that_the_steps_take(build: Any) -> None:
    trainer = build(answers, env_kwargs={"size": 50})
    rollouts = trainer.args.max_steps * trainer.args.generation_batch_size
    assert len(trainer.train_dataset) == rollouts // trainer.args.num_generations < 50


def test_a_data_set_that_would_train_zero_steps_is_refused(build: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"6 rows, but .* 32 rollouts in groups of 4 needs 8"
    ):
        build(answers, settings={"per_device_train_batch_size": 32})


def test_a_control_that_does_not_exist_is_refused(build: Any) -> None:
    with pytest.raises(ConfigurationError, match="shuffled-rewards"):
        build(answers, control="shuffled")


def test_prompts_show_the_tools_as_evaluation_and_demonstrations_do(build: Any) -> None:
    trainer = build(answers)
    shown = trainer.processing_class.apply_chat_template(
        sft_dataset(NOTES, n=1)[0]["messages"][:2],
        tools=sft_dataset(NOTES, n=1)[0]["tools"],
        add_generation_prompt=True,
        tokenize=False,
    )
    seen = trainer.processing_class.decode(
        trainer.output["prompt_ids"][0], skip_special_tokens=False
    )
    assert shown.split("<|im_start|>user")[0] in seen
