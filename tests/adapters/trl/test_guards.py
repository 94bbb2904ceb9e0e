"""`GuardCallback`: actions of the guards, caused by real conditions and seen in the weights."""

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from trl import GRPOTrainer

from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.guards.guards import rollback_message
from adapters.trl import GuardCallback, Rollouts
from tests.adapters.training.guard_proofs import (
    Run,
    State,
    check_silent,
    listening,
    watch,
)
from tests.adapters.trl.scripted_rollouts import (
    BROKEN,
    Speaker,
    answers,
    named_copy,
    one_right,
    scripted_trainer,
)
from tests.adapters.trl.scripted_trl import NOTES, call, recorded, same
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

Make = Callable[..., Any]


@pytest.fixture
def tokenizer(read_tokenizer: Any) -> Any:
    """A fresh one for each test."""
    return deepcopy(read_tokenizer)


@pytest.fixture
def make(tiny_model: Any, tokenizer: Any, tmp_path: Path) -> Make:
    """Makes a trainer that is guarded and watched, and whose groups are all kept."""

    def made(script: Any, **options: Any) -> Any:
        settings = {"lr_scheduler_type": "linear", "max_steps": 4, **options.pop("settings", {})}
        model = named_copy(options.pop("model", tiny_model), tmp_path / "model")
        folder = options.pop("folder", tmp_path / "run")
        return scripted_trainer(model, tokenizer, folder, script, settings=settings, **options)

    return made


def fallback_in(*steps: int) -> Any:
    """No valid call in some steps, though one rollout pays more for it than another."""

    def script(speaker: Speaker) -> list[str]:
        if speaker.step in steps:
            return [BROKEN] * (1 + speaker.member % 3)
        return answers(speaker.number if speaker.member % 2 else 99)

    return script


def thorough(speaker: Speaker) -> list[str]:
    """As the expert plays, with a wrong answer in every other rollout."""
    note = f"<|im_end|>The number is {speaker.number}"
    before = call("read", note=speaker.task), call("count", text=note)
    return answers(speaker.number if speaker.member % 2 else 99, *before)


@pytest.mark.integration
def test_a_run_whose_rollouts_all_run_out_of_tokens_says_so_and_stops(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    def played(length: int, steps: int) -> Run:
        run = Run(rate=1e-3)
        trainer = scripted_trainer(
            deepcopy(tiny_model),
            tokenizer,
            tmp_path / f"run-{steps}",
            thorough,
            settings={"max_completion_length": length, "max_steps": steps},
            guards={"idle_steps": 2},
            rollouts={"max_draws": 1.0},
            rows=2 * steps,
        )
        watch(trainer.guard_callback.guards, run)
        run.told = trainer.seen
        states = recorded(trainer)
        with listening("adapters.trl.callbacks", run):
            try:
                trainer.train()
            except TrainingStopped as stop:
                run.diagnosis = str(stop)
        moving = zip(states.weights, states.optimizer, strict=True)
        run.states = [State(w, {"optimizer": o["state"]}) for w, o in moving]
        return run

    check_silent(played(60, 45))
    assert played(400, 2).numbers(2)["updates"] == 2.0


@pytest.mark.integration
def test_a_roll_back_restores_weights_and_optimizer_and_other_tasks_follow(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a learning rate that falls."""
    trainer = make(fallback_in(4), settings={"max_steps": 5}, guards={"errors": 1.0}, rows=10)
    trainer.train()

    states = trainer.recorder
    assert same(states.weights[4], states.weights[2])
    assert same(states.optimizer[4]["state"], states.optimizer[2]["state"])
    assert not same(states.optimizer[3]["state"], states.optimizer[2]["state"])
    assert [state["last_epoch"] for state in states.schedule] == [0, 1, 2, 3, 4, 5]
    assert len({tuple(output["task_id"]) for output in trainer.outputs}) == 5
    assert rollback_message(4, 2) in caplog.text
    assert [line["roll_backs"] for line in trainer.seen] == [0, 0, 0, 1, 1]
    assert trainer.seen[4]["learning_rate_scale"] == 0.5
    rate = states.schedule[4]["_last_lr"][0]
    assert trainer.seen[4]["learning_rate"] == pytest.approx(0.5 * rate, rel=0.3)
    assert states.moved(5) > 0
    assert not (Path(trainer.args.output_dir) / "snapshots").exists()  # the run has ended


@pytest.mark.integration
def test_updates_left_from_rollouts_before_a_roll_back_are_skipped(make: Make) -> None:
    trainer = make(
        fallback_in(3),
        settings={"max_steps": 6, "num_iterations": 2},
        guards={"errors": 0.5, "actions": {"success": [], "answering": []}},
    )
    trainer.train()
    states = trainer.recorder
    assert [line["roll_backs"] for line in trainer.seen] == [0, 0, 1, 1, 1, 1]
    assert same(states.weights[3], states.weights[0])
    assert states.moved(4) == 0.0
    assert states.moved(5) > 0


@pytest.mark.integration
def test_the_gradient_is_measured_before_it_is_clipped_and_clipped_as_without_guards(
    make: Make, tmp_path: Path
) -> None:
    settings = {"max_steps": 2, "max_grad_norm": 0.01}
    guarded = make(one_right, settings=settings)
    guarded.train()
    plain = make(one_right, settings=settings, folder=tmp_path / "plain")
    plain.remove_callback(plain.guard_callback)
    plain.train()
    norms = [line["grad_norm"] for line in plain.state.log_history if "loss" in line]
    assert [line["grad_norm"] for line in guarded.seen] == pytest.approx(norms, rel=1e-4)
    assert min(norms) > 0.01
    for name, weight in plain.recorder.weights[2].items():
        assert torch.allclose(weight, guarded.recorder.weights[2][name], atol=1e-6)
    assert guarded.args.max_grad_norm == 0.01


def test_a_lowered_rate_is_given_back_after_the_optimizers_step() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    callback = GuardCallback(Rollouts(NOTES))
    callback._rollouts.ended = 1.0
    for step in range(1, 5):
        callback.guards.observe(step, {"kl": 0.6})
    model = torch.nn.Linear(1, 1)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    event = (Mock(fp16=False), Mock(global_step=4), Mock())
    callback._logged = {"kl": 0.6}
    callback.on_pre_optimizer_step(*event, optimizer=optimizer, lr_scheduler=Mock(), model=model)
    assert optimizer.param_groups[0]["lr"] == 0.5
    callback.on_optimizer_step(*event, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == 1.0


@pytest.mark.integration
def test_guards_that_only_warn_let_a_broken_batch_move_the_weights(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    guards = {"only_warn": True, "errors": 1.0}
    trainer = make(fallback_in(2), settings={"max_steps": 2}, guards=guards)
    trainer.train()
    assert trainer.recorder.moved(2) > 0
    assert not (Path(trainer.args.output_dir) / "snapshots").exists()
    assert "warn, validity: `validity` is 0% in 1 value" in caplog.text


class FarReference(GRPOTrainer):
    """In some steps the reference finds a token likely that the policy all but rules out."""

    far_in: tuple[int, ...] = ()

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        head = self.ref_model.lm_head.weight.data
        near = head.clone()
        if self.state.global_step + 1 in self.far_in:
            head /= 400
        try:
            return super()._generate_and_score_completions(inputs)
        finally:
            head.copy_(near)


@pytest.mark.integration
def test_one_nan_after_the_other_rolls_back_and_then_stops_with_a_diagnosis(
    make: Make, tiny_model: Any
) -> None:
    tiny_model.lm_head.weight.data *= 400  # so sure of itself that a token is 100 nats away
    settings = {"max_steps": 9, "beta": 0.01, "learning_rate": 1e-6}
    trainer = make(one_right, model=tiny_model, trainer_class=FarReference, settings=settings)
    trainer.far_in = (2, 3, 4, 5, 6, 7)
    with pytest.raises(
        TrainingStopped, match=r"(?s)step 6.*not finite.*1\. Lower the learning rate. Look for"
    ):
        trainer.train()
    told = trainer.seen
    for key, counted in (("skipped_updates", [0, 1, 2]), ("updates", [1, 1, 1])):
        assert [line[key] for line in told[:3]] == counted
    lines = [line for line in trainer.state.log_history if "loss" in line]
    assert [line["toolgym/updates"] for line in lines[1:3]] == [1, 1]  # of the step before
    states = trainer.recorder
    assert len(states.weights) == 7
    assert [math.isfinite(line["grad_norm"]) for line in told[:3]] == [True, False, False]
    assert states.moved(1) > 0
    assert [states.moved(step) for step in (2, 3)] == [0.0, 0.0]
    assert same(states.optimizer[2]["state"], states.optimizer[1]["state"])
    assert same(states.weights[4], states.weights[0])
    assert same(states.optimizer[4]["state"], {})
    assert same(states.weights[6], states.weights[0])
    assert not list(Path(trainer.args.output_dir).glob("checkpoint-*"))


@pytest.mark.integration
def test_a_policy_that_drifts_from_its_reference_learns_at_half_the_rate(make: Make) -> None:
    """The guard judges an update by the KL divergence that TRL logs for the next one."""
    moved = {}
    for name, limit in (("free", 1e9), ("held", 1e-12)):
        settings = {"beta": 0.01, "max_steps": 7}
        trainer = make(one_right, settings=settings, guards={"kl_limit": limit}, rows=14)
        trainer.train()
        states = trainer.recorder
        moved[name] = {n: states.weights[6][n] - states.weights[5][n] for n in states.weights[6]}
        assert states.schedule[6]["last_epoch"] == 6
    for name, free in moved["free"].items():
        assert (moved["held"][name] - free / 2).abs().max() < 1e-6 + 1e-3 * free.abs().max()


def test_held_out_figures_reach_the_guards_once(make: Make) -> None:
    trainer = make(one_right, settings={"max_steps": 2})
    guards = trainer.guard_callback.guards
    trainer.guard_callback.held_out = {"held_out_accuracy": 0.5, "held_out_episodes": 12.0}
    seen: list[Any] = []
    observe = guards.observe

    def observed(step: int, metrics: dict[str, float]) -> Any:
        seen.append(metrics.get("held_out_accuracy"))
        return observe(step, metrics)

    guards.observe = observed
    trainer.train()
    assert seen == [0.5, None]


@pytest.mark.integration
def test_a_resumed_run_keeps_the_snapshots_up_to_its_checkpoint(make: Make, tmp_path: Path) -> None:
    settings = {"max_steps": 5, "save_strategy": "steps", "save_steps": 2}
    first = make(one_right, settings=settings)
    steps: list[list[int]] = []
    first.guard_callback.on_train_end = lambda *args, **kwargs: None  # as if it had been killed
    first.train()
    snapshots = tmp_path / "run/snapshots"
    assert sorted(path.name for path in snapshots.iterdir()) == [
        "step-0.pt",
        "step-4.pt",
        "step-5.pt",
    ]
    again = make(one_right, settings=settings)
    begin = again.guard_callback.on_step_end

    def on_step_end(*args: Any, **kwargs: Any) -> None:
        steps.append(again.guard_callback._snapshots.steps())
        begin(*args, **kwargs)

    again.guard_callback.on_step_end = on_step_end
    again.train(resume_from_checkpoint=str(tmp_path / "run/checkpoint-4"))
    assert steps == [[0, 4]]


def test_guards_of_other_rollouts_than_the_trainers_are_refused(make: Make) -> None:
    trainer = make(one_right)
    trainer.remove_callback(trainer.guard_callback)
    trainer.add_callback(GuardCallback(Rollouts(NOTES)))
    with pytest.raises(ConfigurationError, match="the guards see no rollouts"):
        trainer.train()


def test_settings_that_are_no_guards_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"guards.*kl_limits"):
        GuardCallback(Rollouts(NOTES), {"kl_limits": 1.0})
    with pytest.raises(ConfigurationError, match="snapshot_steps must be at least 1"):
        GuardCallback(Rollouts(NOTES), snapshot_steps=0)


@pytest.mark.integration
def test_a_second_training_begins_with_fresh_guards_and_the_same_refills(
    make: Make, tiny_model: Any
) -> None:
    trainer = make(fallback_in(2), settings={"max_steps": 3}, guards={"errors": 1.0}, rows=6)
    trainer.train()
    assert trainer.guard_callback.guards.learning_rate_scale == 0.5
    trainer.rollouts.script = one_right
    trainer.train()
    first, *_ = trainer.seen[3:]
    assert (first["updates"], first["learning_rate_scale"]) == (1, 1.0)


@pytest.mark.integration
def test_clipping_is_that_of_the_config_after_a_training_that_was_interrupted(
    make: Make, tmp_path: Path
) -> None:
    settings = {"max_steps": 2, "max_grad_norm": 0.5, "save_strategy": "steps", "save_steps": 1}
    trainer = make(one_right, settings=settings)
    step = trainer.training_step

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        if trainer.state.global_step == 1:
            raise KeyboardInterrupt("by hand")
        return step(*args, **kwargs)

    trainer.training_step = interrupted
    with pytest.raises(KeyboardInterrupt, match="by hand"):
        trainer.train()
    saved = torch.load(tmp_path / "run/checkpoint-1/training_args.bin", weights_only=False)
    assert saved.max_grad_norm == 0.5
    trainer.training_step = step
    trainer.train()
    assert trainer.guard_callback._clip_at == trainer.args.max_grad_norm == 0.5
