"""Actions of the guards in the reference trainer, seen in weights and optimizer.

Each run is a real one: model, environment, sampling, gradient and optimizer. What trips the guard
is done to the run (a learning rate that is far too high, a weight that becomes nan), never to its
numbers. When guards trip is tested by itself in `tests/adapters/training` and `tests/exploits`.
"""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.training.guards.config import Action
from adapters.training.guards.guards import rollback_message
from tests.adapters.training.guard_proofs import (
    Run,
    alone,
    check_all_actions,
    check_half_as_far,
    check_returned,
    check_silent,
    check_warned,
    is_same,
)
from tests.adapters.training.guarded_runs import train

pytestmark = [pytest.mark.torch, pytest.mark.integration]

ODDS = {"right": "56789"}  # about every other answer is right
FAR_TOO_FAST = {"env": ODDS, "learning_rate": 0.3, "steps": 12, "prompts": 4}
HOPELESS = {  # nothing is ever right
    "steps": 6,
    "group_size": 8,
    "prompts": 4,
    "guards": {**alone("idle"), "idle_steps": 2},
}
DRIFTING = {
    "env": ODDS,
    "loss": "dapo",
    "beta": 1e-3,
    "steps": 40,
    "guards": {**alone("kl"), "kl_limit": 0.001},
}


def loses_a_weight(step: int, model: Any) -> None:
    """As after a fault of the machine."""
    if step == 1:
        with torch.no_grad():
            model.model.norm.weight[0] = torch.nan


def test_broken_weights_are_skipped_and_then_undone(tmp_path: Path) -> None:
    run = train(tmp_path, env=ODDS, harm=loses_a_weight, steps=5, guards=alone("gradient"))
    trips = check_all_actions(run, "gradient")
    assert trips == {2: Action.SKIP, 3: Action.SKIP, 4: Action.ROLL_BACK}
    assert run.states[5].is_finite()


def test_a_run_that_is_far_too_fast_goes_back_and_ends(tmp_path: Path) -> None:
    """With all guards and their defaults; the trained model is in ruins after every update."""
    run = train(tmp_path, **FAR_TOO_FAST)
    trips = check_all_actions(run, "validity")
    assert list(trips.values()) == [Action.ROLL_BACK, Action.ROLL_BACK, Action.STOP]
    assert "Lower the learning rate" in run.diagnosis
    assert set(run.returns.values()) == {0}


def test_at_a_lowered_rate_the_same_update_goes_half_as_far(tmp_path: Path) -> None:
    def is_lowered(run: Run) -> bool:
        return any(d.action is Action.LOWER_LR for d in run.decisions)

    run = train(tmp_path / "run", enough=is_lowered, **DRIFTING)
    options = {**DRIFTING, "steps": len(run.told), "guards": alone("")}
    check_half_as_far(run, train(tmp_path / "free", **options), len(run.told))


def test_a_run_without_rewards_is_warned_of_and_stopped(tmp_path: Path) -> None:
    run = train(tmp_path, **HOPELESS)
    trips = check_all_actions(run, "idle")
    assert trips == {2: Action.WARN, 4: Action.WARN, 6: Action.STOP}


def test_where_guards_only_warn_the_same_run_moves_on(tmp_path: Path) -> None:
    guards = {**HOPELESS["guards"], "only_warn": True}
    run = train(tmp_path, **{**HOPELESS, "guards": guards})
    assert run.diagnosis == ""
    assert [step for step, _ in run.trips("idle")] == [2, 4, 6]
    check_warned(run, *run.trips("idle")[0])


@pytest.mark.nightly
def test_all_guards_together_let_a_run_that_learns_alone(tmp_path: Path) -> None:
    run = train(tmp_path, env={"right": "7"}, steps=20, group_size=8, prompts=6)
    assert not [finding for decision in run.decisions for finding in decision.findings]
    assert run.numbers(20)["accuracy"] > run.numbers(1)["accuracy"]


def test_a_run_whose_rollouts_all_run_out_of_tokens_says_so_and_stops(tmp_path: Path) -> None:
    thorough = {"manner": "thorough", "env": ODDS, "learn_from_unfinished": False}
    options = {**thorough, "max_draws": 1.0, "max_completion_length": 30}
    check_silent(train(tmp_path, guards={"idle_steps": 2}, steps=45, **options))


def test_a_return_takes_optimizer_and_schedule_back_and_nothing_that_is_drawn(
    tmp_path: Path,
) -> None:
    """Under a rate that falls; PyTorch's generator is there for models that draw by themselves."""
    random, asked = list[torch.Tensor](), list[str]()

    def prepare(trainer: Any) -> None:
        back, play = trainer._roll_back, trainer.player.play

        def watched(*args: Any) -> None:
            torch.rand(1)  # as a model does that draws by itself
            random.append(torch.get_rng_state())
            back(*args)
            random.append(torch.get_rng_state())

        def played(rollouts: Any, **how: Any) -> None:
            asked.extend(f"{rollout.stream}-{rollout.task_id}" for rollout in rollouts)
            play(rollouts, **how)

        trainer._roll_back, trainer.player.play = watched, played

    options = {**FAR_TOO_FAST, "lr_decay": "linear", "max_completion_length": 60}
    run = train(tmp_path, guards=alone("validity"), prepare=prepare, **options)
    assert len(run.returns) == 2
    for step, place in run.returns.items():
        assert is_same(run.states[step], run.states[place])
        assert not is_same(run.states[step - 1], run.states[place])
        assert rollback_message(step, place) in run.log
    assert is_same(random[0], random[1])
    assert is_same(random[2], random[3])
    assert len(set(asked)) == len(asked) == 16 * len(run.told)  # a task and random numbers each


@pytest.mark.nightly
def test_half_precision_goes_back_with_the_float32_weights_behind_it(tmp_path: Path) -> None:
    run = train(tmp_path, guards=alone("validity"), dtype="bfloat16", **FAR_TOO_FAST)
    step, finding = run.trips("validity")[0]
    check_returned(run, step, finding)


@pytest.mark.nightly
def test_rollouts_that_were_to_be_learned_from_twice_are_thrown_away_on_the_way_back(
    tmp_path: Path,
) -> None:
    run = train(tmp_path, guards=alone("validity"), updates_per_batch=2, **FAR_TOO_FAST)
    step, _ = run.trips("validity")[0]
    assert ["reward" in numbers for numbers in run.told[step - 1 : step + 1]] == [True, True]
    assert run.returns[step] == 0


@pytest.mark.nightly
def test_a_way_back_is_left_where_few_checkpoints_are_kept(tmp_path: Path) -> None:
    """The latest one holds weights in ruins when the guard trips."""
    run = train(tmp_path, guards=alone("validity"), keep=1, **FAR_TOO_FAST)
    step, _ = run.trips("validity")[0]
    assert run.returns[step] == 0
    assert is_same(run.states[step], run.states[0])


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
