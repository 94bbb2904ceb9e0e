"""Actions of the guards, each caused by its real condition and seen in the weights."""

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from transformers import TrainerState

from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.guards.guards import Guards, rollback_message
from adapters.trl.callbacks import GuardCallback
from tests.adapters.training.guard_proofs import (
    Run,
    State,
    check_silent,
    listening,
    watch,
)
from tests.adapters.trl.scripted_trl import (
    Scripted,
    ScriptedStable,
    call,
    recorded,
    same,
    scripted,
)

pytestmark = pytest.mark.torch

Make = Callable[..., Any]
BROKEN = "<tool_call>\n### Step 1: analyze the problem\n</tool_call><|im_end|>"


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    """A fresh one for each test."""
    return deepcopy(read_tokenizer)


@pytest.fixture
def make(tiny_model: Any, tokenizer: Any, tmp_path: Path) -> Make:
    """Makes a trainer that is guarded and watched, and whose groups are all kept."""

    def made(script: Any, **options: Any) -> Any:
        settings = {"dynamic_sampling": False, "beta": 0.0, **options.pop("settings", {})}
        settings = {"lr_scheduler_type": "linear", "max_steps": 4, **settings}
        model = options.pop("model", tiny_model)
        trainer = scripted(model, tokenizer, tmp_path, script, settings=settings, **options)
        trainer.recorder = recorded(trainer)
        trainer.reasons = reasons_of(trainer)
        return trainer

    return made


def reasons_of(trainer: Any) -> list[tuple[str, ...]]:
    """Filled with why the guards did what they did, step by step."""
    told: list[tuple[str, ...]] = []
    observe = trainer._guard_callback.guards.observe

    def observed(*args: Any) -> Any:
        decision = observe(*args)
        told.append(decision.reasons)
        return decision

    trainer._guard_callback.guards.observe = observed
    return told


def right_and_wrong(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Every other rollout answers rightly."""
    numbers = [10 + int(row["task_id"].rpartition("-")[2]) for row in inputs]
    said = [number if place % 2 else 99 for place, number in enumerate(numbers)]
    return [[call("answer", value=value)] for value in said]


def fallback(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """No valid call, though one rollout pays more for it than another."""
    return [[BROKEN] * (1 + place % 3) for place in range(len(inputs))]


def fallback_in(*batches: int) -> Any:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        return (fallback if batch in batches else right_and_wrong)(batch, inputs)

    return script


def number_of(row: dict[str, Any]) -> int:
    return 10 + int(row["task_id"].rpartition("-")[2])


def thorough(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """As the expert plays, with a wrong answer in every other rollout."""
    rollouts = []
    for place, row in enumerate(inputs):
        note = f"<|im_end|>The number is {number_of(row)}"
        said = [call("read", note=row["task_id"]), call("count", text=note)]
        rollouts.append([*said, call("answer", value=number_of(row) if place % 2 else 99)])
    return rollouts


@pytest.mark.integration
def test_a_run_whose_rollouts_all_run_out_of_tokens_says_so_and_stops(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    def played(length: int, steps: int) -> Run:
        run = Run(rate=1e-3)
        settings = {"beta": 0.0, "lr_scheduler_type": "constant", "snapshot_steps": 1}
        settings |= {"max_draws": 1.0, "guards": {"idle_steps": 2}}
        trainer = scripted(
            deepcopy(tiny_model),
            tokenizer,
            tmp_path / f"run-{steps}",
            thorough,
            settings={**settings, "max_completion_length": length, "max_steps": steps},
            on_metrics=lambda step, numbers: run.told.append(numbers),
        )
        watch(trainer._guard_callback.guards, run)
        states = recorded(trainer)
        with listening("adapters.trl.callbacks", run):
            try:
                trainer.train()
            except TrainingStopped as stop:
                run.diagnosis = str(stop)
        moving = zip(states.weights, states.optimizer, states.schedule, strict=True)
        run.states = [State(w, {"optimizer": o, "schedule": s}) for w, o, s in moving]
        return run

    check_silent(played(100, 45))
    assert played(400, 2).numbers(2)["updates"] == 2.0


@pytest.mark.integration
def test_a_return_takes_optimizer_and_schedule_back_and_nothing_that_is_drawn(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a rate that falls; from PyTorch's generator the rollouts are drawn."""
    asked, random = list[str](), list[torch.Tensor]()

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        asked.append(inputs[0]["task_id"])
        return fallback_in(4)(batch, inputs)  # type: ignore[no-any-return]

    seen: list[dict[str, float]] = []
    trainer = make(
        script,
        settings={"snapshot_steps": 1, "max_steps": 5, "guards": {"errors": 1.0}},
        on_metrics=lambda step, numbers: seen.append(numbers),
    )
    back = trainer._guard_callback._roll_back

    def watched(*args: Any) -> None:
        random.append(torch.get_rng_state())
        back(*args)
        random.append(torch.get_rng_state())

    trainer._guard_callback._roll_back = watched
    trainer.train()

    states = trainer.recorder
    assert same(states.weights[4], states.weights[2])
    assert same(states.optimizer[4], states.optimizer[2])
    assert same(states.schedule[4], states.schedule[2])
    assert not same(states.optimizer[3], states.optimizer[2])
    assert not same(states.schedule[3], states.schedule[2])
    assert same(*random)
    assert len(set(asked)) == 5
    assert rollback_message(4, 2) in caplog.text
    assert [line["roll_backs"] for line in seen] == [0, 0, 0, 1, 1]
    assert seen[4]["learning_rate_scale"] == 0.5
    assert seen[4]["learning_rate"] == pytest.approx(0.5 * states.schedule[4]["_last_lr"][0])
    assert states.moved(5) > 0


# One at a time, with what else there is to see


def test_a_lowered_rate_is_given_back_after_the_optimizers_step() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    around = {"stateful": {}, "acts": True, "snapshot_steps": 1, "snapshot_keep": 1, "wait": Mock()}
    guards = Guards()
    for step in range(1, 5):
        guards.observe(step, {"kl": 0.6})
    callback = GuardCallback(guards, lambda: {"kl": 0.6}, Mock(), Mock(), Mock(), **around)
    event = (Mock(), TrainerState(), Mock())
    callback.on_pre_optimizer_step(*event, optimizer=optimizer, lr_scheduler=Mock(), model=Mock())
    assert optimizer.param_groups[0]["lr"] == 0.5
    callback.on_optimizer_step(*event, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_guards_that_only_warn_let_that_batch_move_the_weights(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    guards = {"only_warn": True, "errors": 1.0}
    trainer = make(fallback_in(2), settings={"guards": guards, "max_steps": 2})
    trainer.train()
    assert trainer.recorder.moved(2) > 0
    assert not (Path(trainer.args.output_dir) / "snapshots").exists()
    assert "warn, validity: `validity` is 0% in 1 value" in caplog.text


class FarReference(Scripted):
    """In some batches the reference finds a token likely that the policy all but rules out."""

    far_in: tuple[int, ...] = ()

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        head = self.ref_model.lm_head.weight.data
        near = head.clone()
        if self.batches + 1 in self.far_in:
            head /= 400
        try:
            return super()._generate_and_score_completions(inputs)
        finally:
            head.copy_(near)


def with_far_reference(make: Make, model: Any, *batches: int, **settings: Any) -> Any:
    class Trainer(ScriptedStable, FarReference):
        pass

    model.lm_head.weight.data *= 400  # so sure of itself that a token is 100 nats away
    trainer = make(
        right_and_wrong,
        model=model,
        trainer_class=Trainer,
        settings={"beta": 0.01, "learning_rate": 1e-6, **settings},
    )
    trainer.far_in = batches
    return trainer


@pytest.mark.integration
def test_one_nan_after_the_other_rolls_back_and_then_stops_with_a_diagnosis(
    make: Make, tiny_model: Any
) -> None:
    told: dict[int, dict[str, float]] = {}
    trainer = with_far_reference(make, tiny_model, 2, 3, 4, 5, 6, 7, max_steps=9)
    trainer._on_metrics = told.__setitem__
    with pytest.raises(TrainingStopped, match=r"(?s)step 6.*loss.*not finite.*1\. Look for a"):
        trainer.train()
    lines = [line for line in trainer.state.log_history if "loss" in line]
    for key, counted in (("skipped_updates", [0, 1, 2]), ("updates", [1, 1, 1])):
        assert [told[step][key] for step in (1, 2, 3)] == counted
        assert [line[f"toolgym/{key}"] for line in lines[:3]] == counted  # for other callbacks
    states = trainer.recorder
    assert len(states.weights) == 7
    assert [math.isfinite(told[step]["loss"]) for step in (1, 2, 3)] == [True, False, False]
    assert states.moved(1) > 0
    assert [states.moved(step) for step in (2, 3)] == [0.0, 0.0]
    assert same(states.optimizer[2], states.optimizer[1])
    assert same(states.schedule[2], states.schedule[1])
    assert same(states.weights[4], states.weights[0])
    assert same(states.optimizer[4]["state"], {})
    assert same(states.weights[6], states.weights[0])
    assert not list(Path(trainer.args.output_dir).glob("checkpoint-*"))


@pytest.mark.integration
def test_a_policy_that_drifts_from_its_reference_learns_at_half_the_rate(
    make: Make, tokenizer: Any, tiny_model: Any
) -> None:
    moved = {}
    for name, limit in (("free", 1e9), ("held", 1e-12)):
        settings = {"beta": 0.01, "max_steps": 6, "guards": {"kl_limit": limit}}
        trainer = make(right_and_wrong, model=deepcopy(tiny_model), settings=settings)
        trainer.train()
        states = trainer.recorder
        moved[name] = {n: states.weights[5][n] - states.weights[4][n] for n in states.weights[5]}
        assert states.schedule[5]["last_epoch"] == 5
    for name, free in moved["free"].items():
        assert (moved["held"][name] - free / 2).abs().max() < 1e-6 + 1e-3 * free.abs().max()


def test_held_out_figures_reach_the_guards_once(make: Make) -> None:
    trainer = make(right_and_wrong, settings={"max_steps": 2})
    trainer.held_out = {"held_out_accuracy": 0.5, "held_out_episodes": 12.0}
    seen: list[Any] = []
    observe = trainer._guard_callback.guards.observe

    def observed(step: int, metrics: dict[str, float]) -> Any:
        seen.append(metrics.get("held_out_accuracy"))
        return observe(step, metrics)

    trainer._guard_callback.guards.observe = observed
    trainer.train()
    assert seen == [0.5, None]
