"""Guards in the reference trainer, tripped by what they are there for.

Each run is a real one: model, environment, sampling, gradient and optimizer. What trips the guard
is done to the run (a learning rate that is far too high, a payment for what is harmful, a weight
that becomes nan), never to its numbers. All other guards are off, so that each run goes through the
whole list of one guard's actions; and what the guard decides is read off weights and optimizer.
The rules of all guards are tested by themselves in `tests/adapters/training`.
"""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

import torch

from adapters.training.guards.checks import GUARDS
from adapters.training.guards.config import Action
from adapters.training.guards.guards import rollback_message
from tests.adapters.training.guard_proofs import (
    Case,
    Run,
    alone,
    check_all_actions,
    check_half_as_far,
    check_returned,
    check_silent,
    check_warned,
    has_done_all,
    is_same,
)
from tests.adapters.training.guarded_runs import FREE, task_order, train
from tests.sweeps import sweep

pytestmark = [pytest.mark.torch, pytest.mark.integration]

ORDER = task_order()
ODDS = {"right": "56789"}  # about every other answer is right
FAR_TOO_FAST = {"env": ODDS, "learning_rate": 0.3, "steps": 12}
HOPELESS = {"steps": 8}  # nothing is ever right; looking costs a little


def overflows(step: int, model: Any) -> None:
    """Activations that no float32 can hold, from weights that it can."""
    if step in (1, 5, 7):
        with torch.no_grad():
            model.model.norm.weight.fill_(3e38)


def loses_a_weight(step: int, model: Any) -> None:
    """As after a fault of the machine."""
    if step in (1, 3, 5):
        with torch.no_grad():
            model.model.norm.weight[0] = torch.nan


def compared_to_first(run: Run, step: int, name: str) -> float:
    return run.numbers(step)[name] / run.numbers(1)[name]


def fell(run: Run, step: int) -> bool:
    return run.numbers(step)["validity"] < 0.1 < 0.8 < run.numbers(step - 1)["validity"]


CASES: dict[str, Case] = {
    "non_finite": Case(
        {"env": ODDS, "harm": overflows, "steps": 10},
        lambda run, step: "nan" in str(run.numbers(step)["loss"]) and run.states[step].is_finite(),
    ),
    "broken_weights": Case(
        {"env": ODDS, "harm": loses_a_weight, "steps": 10},
        lambda run, step: not run.states[step - 1].is_finite(),
    ),
    # Two tasks teach, the next two pay the same whatever is done, two teach again.
    "no_signal": Case(
        {
            "env": {"rich": (*ORDER[:2], *ORDER[4:6]), "rewards": FREE},
            "prompts": 1,
            "group_size": 8,
            "learning_rate": 1e-4,
            "steps": 6,
        },
        lambda run, step: run.numbers(step)["grad_norm"] == 0.0,
    ),
    "update_collapse": Case(FAR_TOO_FAST, fell),
    "validity": Case(
        FAR_TOO_FAST,
        lambda run, step: compared_to_first(run, step, "validity") < 0.5,
        {"patience": 2},
    ),
    # It is paid for looking at one place, and never right: so it does nothing else any more.
    "entropy_floor": Case(
        {"env": {"prize": 7}, "group_size": 8, "steps": 80},
        lambda run, step: compared_to_first(run, step, "entropy") < 0.55,
        {"patience": 2, "baseline_steps": 2, "entropy_floor": 0.5},
    ),
    "kl": Case(
        {"env": ODDS, "loss": {"name": "dapo", "beta": 1e-3}, "steps": 40},
        lambda run, step: run.numbers(step)["kl"] > 1e-3 > run.numbers(1)["kl"],
        {"patience": 1, "kl_ceiling": 0.001, "kl_spike": 1e6},
    ),
    # Rollouts differ by a few hundredths in fourteen tasks, and then in three by who is right.
    "grad_norm": Case(
        {
            "env": {"rich": tuple(ORDER[14:17])},
            "prompts": 1,
            "group_size": 8,
            "advantages": "group_centered",
            "learning_rate": 1e-5,
            "steps": 19,
        },
        lambda run, step: run.numbers(step)["grad_norm"] > 20 * run.numbers(14)["grad_norm"],
    ),
    "flat_reward": Case(
        HOPELESS, lambda run, step: run.numbers(step)["reward_max"] <= 0.0, {"reward_patience": 2}
    ),
}


@pytest.mark.parametrize("name", sweep(CASES, ["broken_weights", "no_signal", "update_collapse"]))
def test_a_guard_does_all_that_its_list_promises(name: str, tmp_path: Path) -> None:
    (guard,) = (guard for guard in GUARDS if guard.name == name)
    case = CASES[name]
    guards = alone(name, **case.config)
    run = train(tmp_path, guards=guards, enough=has_done_all(guard), **case.options)
    check_all_actions(run, guard, case)


def test_at_a_lowered_rate_the_same_update_goes_half_as_far(tmp_path: Path) -> None:
    case = CASES["kl"]

    def is_lowered(run: Run) -> bool:
        return any(d.action is Action.LOWER_LR for d in run.decisions)

    guards = alone("kl", **case.config)
    run = train(tmp_path / "run", guards=guards, enough=is_lowered, **case.options)
    options = {**case.options, "steps": len(run.told)}
    free = train(tmp_path / "free", guards=alone(""), **options)
    check_half_as_far(run, free, len(run.told))


def test_where_guards_only_warn_the_same_run_moves_on(tmp_path: Path) -> None:
    case = CASES["flat_reward"]
    guards = {**alone("flat_reward", **case.config), "only_warn": True}
    run = train(tmp_path, guards=guards, **{**case.options, "steps": 4})
    trips = run.trips("flat_reward")
    assert trips
    assert run.diagnosis == ""
    for times, (step, finding) in enumerate(trips, 1):
        assert case.is_so(run, step)
        if times.bit_count() == 1:  # told at growing distances
            check_warned(run, step, finding)


def test_all_guards_together_end_a_run_that_is_far_too_fast(tmp_path: Path) -> None:
    """With the defaults; the trained model is in ruins after every update."""
    run = train(tmp_path, **FAR_TOO_FAST)
    assert "Lower the learning rate (it is 0.3)" in run.diagnosis
    assert len(run.told) == 6
    assert [run.returns[step] for step in (2, 4)] == [0, 0]
    assert is_same(run.states[4], run.states[0])


@pytest.mark.nightly
def test_all_guards_together_let_a_run_that_learns_alone(tmp_path: Path) -> None:
    """But for a step now and then whose gradient is 0."""
    run = train(tmp_path, env={"right": "7"}, steps=20, group_size=8, prompts=6)
    found = {finding.guard for decision in run.decisions for finding in decision.findings}
    assert found <= {"no_signal"}
    assert run.numbers(20)["accuracy"] > run.numbers(1)["accuracy"]


THOROUGH = {"manner": "thorough", "env": ODDS, "learn_from_unfinished": False}


def test_a_run_whose_rollouts_all_run_out_of_tokens_says_so_and_stops(tmp_path: Path) -> None:
    guards, options = {"nothing_patience": 2}, {**THOROUGH, "sampling": {"max_draws": 1.0}}
    run = train(tmp_path, guards=guards, steps=45, max_completion_length=30, **options)
    length = check_silent(run, allowed=30)

    enough = train(tmp_path / "enough", steps=2, max_completion_length=length, **options)
    assert enough.numbers(2)["updates"] == 2.0


def test_a_return_takes_optimizer_and_schedule_back_and_nothing_that_is_drawn(
    tmp_path: Path,
) -> None:
    """Under a rate that falls; PyTorch's generator is there for models that draw by themselves."""
    random, asked = list[torch.Tensor](), list[str]()

    def prepare(trainer: Any) -> None:
        back, play = trainer._roll_back, trainer._batch_sampler._player.play

        def watched(*args: Any) -> None:
            torch.rand(1)  # as a model does that draws by itself
            random.append(torch.get_rng_state())
            back(*args)
            random.append(torch.get_rng_state())

        def played(requests: Any) -> Any:
            asked.extend(request.name for request in requests)
            return play(requests)

        trainer._roll_back, trainer._batch_sampler._player.play = watched, played

    options = {**FAR_TOO_FAST, "decay": "linear", "steps": 4, "max_completion_length": 60}
    run = train(tmp_path, guards=alone("update_collapse"), prepare=prepare, **options)
    assert run.returns == {2: 0, 4: 0}
    for step, place in run.returns.items():
        assert is_same(run.states[step], run.states[place])
        assert (
            run.states[step].optimizer["updates"] == 0 < run.states[step - 1].optimizer["updates"]
        )
        assert rollback_message(step, place) in run.log
    assert run.numbers(3)["learning_rate"] == pytest.approx(run.numbers(1)["learning_rate"] / 2)
    assert is_same(random[0], random[1])
    assert is_same(random[2], random[3])
    assert len(set(asked)) == len(asked) == 4 * 2 * 4  # a task and a stream of numbers each


@pytest.mark.nightly
def test_half_precision_goes_back_with_the_float32_weights_behind_it(tmp_path: Path) -> None:
    run = train(tmp_path, guards=alone("update_collapse"), dtype="bfloat16", **FAR_TOO_FAST)
    step, finding = run.trips("update_collapse")[0]
    kept = run.states[step].optimizer["tensors"]
    assert any(name.endswith(".missing") for name in kept), sorted(kept)[:9]
    check_returned(run, step, finding)


@pytest.mark.nightly
def test_rollouts_that_were_to_be_learnt_from_twice_are_thrown_away_on_the_way_back(
    tmp_path: Path,
) -> None:
    run = train(tmp_path, guards=alone("update_collapse"), updates_per_batch=2, **FAR_TOO_FAST)
    step, _ = run.trips("update_collapse")[0]
    assert ["reward" in numbers for numbers in run.told[: step + 1]] == [True, False, True, True]
    assert run.returns[step] == 0


@pytest.mark.nightly
def test_a_way_back_is_left_where_few_checkpoints_are_kept(tmp_path: Path) -> None:
    """The latest one holds weights in ruins when patience is at its end."""
    case = CASES["validity"]
    run = train(tmp_path, guards=alone("validity", **case.config), keep=1, **case.options)
    assert run.returns[3] == 0
    assert is_same(run.states[3], run.states[0])


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
