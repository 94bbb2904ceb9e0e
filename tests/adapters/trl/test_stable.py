"""What a step of `StableGRPOTrainer` is made of, and that a run taken up again is the same run."""

import json
import threading
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from datasets import Dataset
from trl import GRPOConfig

from adapters.trl import (
    StableGRPOConfig,
    StableGRPOTrainer,
    ToolGRPOTrainer,
    build_trainer,
    environment_factory,
    training_dataset,
)
from tests.adapters.trl.scripted_trl import (
    NOTES,
    SETTINGS,
    always,
    call,
    recorded,
    same,
    scripted,
)
from toolgym import ConfigurationError, Task, TaskSet, ToolEnv, tool
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
    """Makes a trainer that is watched and writes its numbers down."""

    def made(script: Any, folder: Path | None = None, **options: Any) -> Any:
        seen: list[dict[str, float]] = []
        options.setdefault("on_metrics", lambda step, numbers: seen.append(numbers))
        model = options.pop("model", None) or deepcopy(tiny_model)
        settings = {"beta": 0.0, **options.pop("settings", {})}
        where = folder or tmp_path / "run"
        trainer = scripted(model, tokenizer, where, script, settings=settings, **options)
        trainer.seen, trainer.recorder = seen, recorded(trainer)
        return trainer

    return made


def number_of(row: dict[str, Any]) -> int:
    return int(row["task_id"].rpartition("-")[2])


def even_notes_live(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Of even notes every other rollout is right; of odd ones none, but some cost more."""
    rollouts = []
    for place, row in enumerate(inputs):
        is_right = number_of(row) % 2 == 0 and place % 2 == 0
        said = [call("answer", value=10 + number_of(row) if is_right else 99)]
        rollouts.append(said if place % 3 else [call("count", text="a"), *said])
    return rollouts


def tasks_learnt(trainer: Any) -> list[int]:
    """By group of the last batch the number of its note, from its prompt."""
    texts = trainer.processing_class.batch_decode(trainer.batch["prompt_ids"][::4])
    return [int(text.split("Which number is in note ")[1][0]) for text in texts]


def keep_batches(trainer: Any) -> None:
    make_batch = trainer._generate_and_score_completions

    def made(inputs: Any) -> Any:
        trainer.batch = make_batch(inputs)
        return trainer.batch

    trainer._generate_and_score_completions = made


TWO_GROUPS = {"per_device_train_batch_size": 8, "num_generations": 4}


@pytest.mark.integration
def test_a_step_learns_from_live_groups_only_and_draws_others_for_the_dead(make: Make) -> None:
    trainer = make(even_notes_live, settings={**TWO_GROUPS, "max_steps": 3, "max_draws": 8})
    keep_batches(trainer)
    learnt = []
    trainer._guard_callback.on_step_end, end = None, trainer._guard_callback.on_step_end
    trainer._guard_callback.on_step_end = lambda *a, **k: (
        learnt.extend(tasks_learnt(trainer)),
        end(*a, **k),
    )[1]
    trainer.train()
    assert len(learnt) == 6
    assert all(note % 2 == 0 for note in learnt)
    drawn = sum(line["drawn_groups"] for line in trainer.seen)
    dropped = sum(line["dropped_groups"] for line in trainer.seen)
    assert drawn > 6
    assert dropped > 0
    assert drawn - dropped - sum(line["surplus_groups"] for line in trainer.seen) == 6
    assert all(line["masked_groups"] == 0 for line in trainer.seen)
    assert any(0 < line["dead_groups"] < 1 for line in trainer.seen)
    assert all(line["zero_variance_groups"] == 0 for line in trainer.seen)


def test_places_that_no_live_group_fills_hold_dead_ones_that_teach_nothing(make: Make) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        """Only the very first group of the run is live."""
        dead = [
            [call("count", text="a" * (1 + i % 2)), call("answer", value=0)]
            for i in range(len(inputs))
        ]
        if batch == 1:
            dead[0] = [call("answer", value=10 + number_of(inputs[0]))]
        return dead

    trainer = make(script, settings={**TWO_GROUPS, "max_steps": 1, "max_draws": 2})
    keep_batches(trainer)
    trainer.train()
    batch, (numbers,) = trainer.batch, trainer.seen
    told = {"drawn_groups": 4, "dropped_groups": 3, "masked_groups": 1, "sampling_rounds": 2}
    assert {key: numbers[key] for key in told} == told
    loss_mask = batch["completion_mask"] * batch["tool_mask"]
    assert (loss_mask[:4].sum(1) > 0).all()
    assert loss_mask[4:].sum() == 0
    assert batch["advantages"][4:].abs().max() == 0
    assert batch["num_items_in_batch"] == loss_mask.sum() == numbers["learnt_tokens"]
    assert batch["advantages"][:4].sum() == pytest.approx(0.0, abs=1e-6)
    lead = torch.tensor([0.75, -0.25, -0.25, -0.25])
    spread = 0.5 * (batch["advantages"][0] - batch["advantages"][1]) / lead[0]
    assert spread > 0
    assert numbers["grad_norm"] > 0


def test_a_batch_in_which_nothing_lives_moves_nothing(make: Make) -> None:
    wrong = [call("answer", value=0)]
    costly = [call("count", text="a"), *wrong]
    trainer = make(always(wrong, costly, wrong, costly), settings={"max_steps": 1, "max_draws": 1})
    trainer.train()
    assert trainer.seen[0]["zero_variance_groups"] == 0.0
    assert trainer.seen[0]["masked_groups"] == 1
    assert trainer.seen[0]["learnt_tokens"] == 0
    assert "entropy" not in trainer.seen[0]
    assert trainer.recorder.moved(1) == 0.0


def leads(trainer: Any) -> list[float]:
    keep_batches(trainer)
    trainer.train()
    return [round(lead, 4) for lead in trainer.batch["advantages"].tolist()]


ONE_RIGHT = {"dynamic_sampling": False, "max_steps": 1, "shuffle_dataset": False}


def one_right(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [call("answer", value=10 + number_of(row) if not place else 0)]
        for place, row in enumerate(inputs)
    ]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1.4997, -0.4999, -0.4999, -0.4999]),
        (
            {"advantage_estimator": "leave_one_out", "advantage_clip": 0.7},
            [0.7, -0.3333, -0.3333, -0.3333],
        ),
        (
            {"advantage_estimator": "trl", "advantage_clip": 0.3},
            [0.3, -0.25, -0.25, -0.25],
        ),
    ],
)
def test_advantages_are_those_of_the_estimator_and_bounded(
    make: Make, settings: dict[str, Any], expected: list[float]
) -> None:
    assert leads(make(one_right, settings={**ONE_RIGHT, **settings})) == expected


def test_rollouts_that_ran_out_are_marked_counted_and_not_learnt_from(
    make: Make, tokenizer: Any
) -> None:
    """Out of calls, out of tokens inside a turn, and without room for what came back."""
    answer = [call("answer", value=10)]
    many = [call("count", text="a")] * 9
    cut = ["I will think about this at length and " * 99]
    sizes = (call("count", text="b7 " * size) for size in range(100))
    fits = [text for text in sizes if len(tokenizer(text)["input_ids"]) <= 300]
    trainer = make(
        always(answer, many, cut, [fits[-1]] * 9),
        settings={
            "dynamic_sampling": False,
            "max_steps": 1,
            "max_tool_calling_iterations": 3,
            "max_completion_length": 300,
        },
    )
    keep_batches(trainer)
    trainer.train()
    learnt = (trainer.batch["completion_mask"] * trainer.batch["tool_mask"]).sum(1)
    assert [bool(tokens) for tokens in learnt] == [True, False, False, False]
    marked = [environment._is_unfinished for environment in trainer.environments]
    assert marked == [False, True, True, True]
    assert trainer.seen[0]["unfinished"] == 0.75
    assert trainer.seen[0]["clipped"] == 0.25
    assert trainer.batch["num_items_in_batch"] == learnt.sum()


class MeetingEnv(ToolEnv[Task]):
    """A slow tool, and one that returns only when four rollouts call it at the same time."""

    barrier = threading.Barrier(4)

    def __init__(self, **options: Any) -> None:
        super().__init__(TaskSet([Task("meet", "Meet the others.")]), **options)

    def begin(self, task: Task) -> str:
        return task.question

    @tool
    def walk(self) -> str:
        """Go there."""
        time.sleep(0.01)
        return "You are there."

    @tool(terminal=True)
    def meet(self, visitor: Annotated[str, "yours"]) -> str:
        """Wait for the others.

        Args:
            visitor: Your name.
        """
        try:
            self.barrier.wait(timeout=120)
        except threading.BrokenBarrierError:
            return self.submit(False, "nobody came")
        return self.submit(True, f"hello {visitor}")


MEETING = "trl-tests/Meeting-v0"
if MEETING not in gym.registry:
    gym.register(id=MEETING, entry_point=MeetingEnv)


def test_tools_of_different_rollouts_run_at_the_same_time(make: Make) -> None:
    names = ["ann", "bob", "cid", "dee"]
    trainer = make(
        always(*[[call("walk"), call("meet", visitor=name)] for name in names]),
        env_id=MEETING,
        settings={"max_steps": 1, "dynamic_sampling": False},
    )
    trainer.train()
    told = [messages[3]["content"] for messages in trainer.outcome[1]]
    assert told == [f"hello {name}" for name in names]
    assert trainer._workers._pool is None


def test_the_numbers_of_a_step_are_in_the_vocabulary(make: Make) -> None:
    trainer = make(even_notes_live, settings={"max_steps": 1, "beta": 0.01})
    trainer.train()
    (numbers,) = trainer.seen
    assert not numbers.keys() - METRICS.keys()
    missing = {key for key, metric in METRICS.items() if "grpo" in metric.phases} - numbers.keys()
    of_losses_elsewhere = {"policy_loss", "ratio", "mismatch"}
    assert missing == of_losses_elsewhere | {*MISTAKES}  # all have an answer


def test_rollouts_are_new_only_in_the_step_that_played_them(make: Make) -> None:
    settings = {"num_iterations": 2, "max_steps": 2, "dynamic_sampling": False}
    trainer = make(even_notes_live, settings=settings)
    trainer.train()
    assert trainer.batches == 1
    told = [("reward" in line, "loss" in line) for line in trainer.seen]
    assert told == [(True, True), (False, True)]
    assert trainer.seen[1]["clip_high"] >= 0.0


STAGES = {
    "per_device_train_batch_size": 4,
    "steps_per_generation": 2,
    "gradient_accumulation_steps": 1,
    "num_generations": 4,
    "max_draws": 2.5,
    "save_strategy": "steps",
    "save_steps": 1,
    "save_total_limit": 9,
    "snapshot_steps": 1,
}


@pytest.mark.integration
def test_a_run_that_is_taken_up_again_is_the_same_run(make: Make, tmp_path: Path) -> None:
    """Refills, epochs of three batches of two steps each, a checkpoint after the first epoch."""
    settings = {**STAGES, "max_steps": 10, "beta": 0.01}
    whole = make(even_notes_live, tmp_path / "whole", settings=settings)
    whole.train()
    saved = sorted(
        int(path.name.split("-")[1]) for path in (tmp_path / "whole").glob("checkpoint-*")
    )
    assert saved == [2, 4, 6, 8, 10]
    state = json.loads((tmp_path / "whole/checkpoint-6/trainer_state.json").read_text())
    assert state["stateful_callbacks"]["toolgym"]["refills"]["walked"] > 0

    resumed = make(even_notes_live, tmp_path / "resumed", settings=settings)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole/checkpoint-6"))

    assert len(resumed.seen) == 4
    for before, after in zip(whole.seen[6:], resumed.seen, strict=True):
        keys = [key for key in before if METRICS[key].source != "clock"]
        assert {key: after[key] for key in keys} == {key: before[key] for key in keys}
    assert same(resumed.recorder.weights[-1], whole.recorder.weights[-1])
    assert same(resumed.recorder.optimizer[-1], whole.recorder.optimizer[-1])


def warmed_up(model: Any, folder: Path) -> Any:
    """A model whose name still leads to what it was before it was changed in memory."""
    model.save_pretrained(folder)
    model.config._name_or_path = str(folder)
    torch.manual_seed(1)
    with torch.no_grad():
        model.lm_head.weight += 0.3 * torch.randn_like(model.lm_head.weight)
    return model


@pytest.mark.integration
def test_the_reference_is_the_warmed_up_model(make: Make, tiny_model: Any, tmp_path: Path) -> None:
    model = warmed_up(tiny_model, tmp_path / "base")
    first = deepcopy(model.state_dict())
    settings = {"beta": 0.01, "max_steps": 2, **TWO_GROUPS}
    trainer = make(even_notes_live, model=model, settings=settings)
    assert model.config._name_or_path == str(tmp_path / "base")
    trainer.train()
    kl = [line["kl"] for line in trainer.seen]
    assert kl[0] == 0.0
    assert kl[1] > 0.0
    assert same(dict(trainer.ref_model.state_dict()), dict(first))


@pytest.mark.integration
def test_a_reference_can_be_named(make: Make, tiny_model: Any, tmp_path: Path) -> None:
    model = warmed_up(tiny_model, tmp_path / "base")
    trainer = make(
        even_notes_live,
        model=model,
        reference=tmp_path / "base",
        settings={"beta": 0.01, "max_steps": 1, **TWO_GROUPS},
    )
    trainer.train()
    assert trainer.seen[0]["kl"] > 0.0
    assert not (tmp_path / "run" / "reference").exists()


def adapter() -> Any:
    from peft import LoraConfig

    return LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")


@pytest.mark.integration
def test_under_lora_the_reference_is_the_model_without_its_adapter(
    make: Make, tiny_model: Any, tmp_path: Path
) -> None:
    model = warmed_up(tiny_model, tmp_path / "base")
    first = deepcopy(model)
    settings = {"beta": 0.01, "max_steps": 2, "learning_rate": 1e-2, **TWO_GROUPS}
    trainer = make(even_notes_live, model=model, peft_config=adapter(), settings=settings)
    keep_batches(trainer)
    trainer.train()
    kl = [line["kl"] for line in trainer.seen]
    assert kl[0] == pytest.approx(0.0, abs=1e-6)
    assert kl[1] > 1e-6
    batch = trainer.batch
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    width = batch["completion_ids"].shape[1]
    with torch.no_grad():
        logits = first(input_ids=ids, attention_mask=mask).logits[:, -width - 1 : -1]
        plain = logits.log_softmax(-1).gather(-1, batch["completion_ids"][..., None])[..., 0]
    own = batch["completion_mask"] * batch["tool_mask"] == 1
    assert torch.allclose(batch["ref_per_token_logps"][own], plain[own], atol=1e-4)


@pytest.mark.integration
def test_under_lora_a_roll_back_restores_the_adapter(make: Make, tiny_model: Any) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        broken = "<tool_call>\n### Step 1\n</tool_call><|im_end|>"
        return [[broken]] * len(inputs) if batch == 3 else even_notes_live(batch, inputs)

    trainer = make(
        script,
        peft_config=adapter(),
        settings={
            "max_steps": 3,
            "dynamic_sampling": False,
            "learning_rate": 1e-2,
            "snapshot_steps": 1,
            "guards": {"errors": 0.5, "actions": {"success": [], "answering": []}},
            **TWO_GROUPS,
        },
    )
    trainer.train()
    states = trainer.recorder
    assert states.moved(2) > 0
    assert trainer.seen[2]["roll_backs"] == 1
    assert same(states.weights[3], states.weights[1])
    assert same(states.optimizer[3]["state"], states.optimizer[1]["state"])


def test_a_dict_makes_the_stable_trainer_and_trls_config_makes_trls_update(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    settings = {
        **SETTINGS,
        "output_dir": str(tmp_path),
        "beta": 0.0,
        "gradient_accumulation_steps": 1,
    }
    stable = build_trainer(tiny_model, tokenizer, NOTES, config=settings)
    assert isinstance(stable, StableGRPOTrainer)
    plain = GRPOConfig(
        use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", **settings
    )
    made = build_trainer(tiny_model, tokenizer, NOTES, config=plain)
    assert isinstance(made, ToolGRPOTrainer)
    assert not isinstance(made, StableGRPOTrainer)
    with pytest.raises(ConfigurationError, match="takes a StableGRPOConfig, got a GRPOConfig"):
        build_trainer(tiny_model, tokenizer, NOTES, config=plain, trainer_class=StableGRPOTrainer)


def test_rows_that_name_no_task_cannot_be_drawn_anew(make: Make) -> None:
    prompt = training_dataset(NOTES)[0]["prompt"]
    rows = Dataset.from_list([{"prompt": prompt}] * 6)
    with pytest.raises(ConfigurationError, match="column `task_id` or `seed`"):
        make(even_notes_live, dataset=rows)
    make(even_notes_live, dataset=rows, settings={"dynamic_sampling": False})


def test_too_few_rows_are_refused_however_the_trainer_is_made(make: Make) -> None:
    trainer = make(even_notes_live)
    rows = training_dataset(NOTES, n=2)
    args = StableGRPOConfig(
        output_dir=trainer.args.output_dir, use_cpu=True, beta=0.0, gradient_accumulation_steps=8
    )
    with pytest.raises(ConfigurationError, match=r"2 rows, but .* 64 rollouts in groups of 8"):
        StableGRPOTrainer(
            trainer.model,
            args=args,
            train_dataset=rows,
            processing_class=trainer.processing_class,
            environment_factory=environment_factory(NOTES),
        )
