"""Every action of the guards, brought about by the real condition and read off the weights."""

import math
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import torch
from transformers import TrainerCallback

from adapters.training.guards.checks import GUARDS, Guard
from adapters.training.guards.config import GUARD_NAMES
from adapters.training.guards.fault_limit import TrainingStopped
from adapters.training.guards.guards import rollback_message
from tests.adapters.training.guard_proofs import (
    QUICK,
    Case,
    Run,
    State,
    alone,
    check_all_actions,
    check_held_by_the_ceiling,
    check_silent,
    listening,
    watch,
)
from tests.adapters.trl.scripted_trl import (
    Scripted,
    always,
    call,
    recorded,
    same,
    scripted,
)
from tests.sweeps import sweep

pytestmark = pytest.mark.torch

Make = Callable[..., Any]
BROKEN = "<tool_call>\n### Step 1: analyze the problem\n</tool_call><|im_end|>"
NEVER = {"all_invalid": [], "update_collapse": [], "validity": [], "no_signal": []}


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


# Each guard through its whole list; what the model says comes from a script, the rest is real


def number_of(row: dict[str, Any]) -> int:
    return 10 + int(row["task_id"].rpartition("-")[2])


def hopeless(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Nobody is right, though some have spent more on it."""
    wrong = call("answer", value=99)
    return [[*[call("count", text="a")] * (place % 2), wrong] for place in range(len(inputs))]


def mastered(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Everybody is right, though some have spent more on it."""
    spent = [[call("count", text="a")] * (place % 2) for place in range(len(inputs))]
    rows = zip(spent, inputs, strict=True)
    return [[*calls, call("answer", value=number_of(row))] for calls, row in rows]


def except_in(batches: Any, usual: Any, other: Any) -> Any:
    """One script, and in these batches another."""

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        return (other if batch in batches else usual)(batch, inputs)  # type: ignore[no-any-return]

    return script


def idle(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    return [[call("answer", value=0)]] * len(inputs)


def failing(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Right or wrong, after calls of a tool that there is none of."""
    return [[call("guess"), call("peek"), *turns] for turns in right_and_wrong(batch, inputs)]


def slovenly(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """Right or wrong, in calls that are no JSON."""
    told = right_and_wrong(batch, inputs)
    return [[turn.replace('"', "'") for turn in turns] for turns in told]


class Harm(TrainerCallback):
    """Does something to the model after some steps, as a fault of the machine would."""

    def __init__(self, does: Callable[[Any], Any], steps: tuple[int, ...]) -> None:
        self.does, self.steps = does, steps

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in self.steps:
            with torch.no_grad():
                self.does(kwargs["model"])


def overflows(model: Any) -> None:
    """Activations that no float32 can hold, from weights that it can."""
    model.model.norm.weight.fill_(3e38)


def loses_a_weight(model: Any) -> None:
    model.model.norm.weight[0] = torch.nan


def is_sharpened(model: Any) -> None:
    model.lm_head.weight.mul_(100)


def is_blurred(model: Any) -> None:
    model.lm_head.weight.div_(100)


def metric(name: str, holds: Callable[[float], bool]) -> Callable[[Run, int], bool]:
    return lambda run, step: holds(run.numbers(step)[name])


def fell(run: Run, step: int) -> bool:
    return run.numbers(step)["validity"] == 0.0 and run.numbers(step - 1)["validity"] == 1.0


EVEN, ALL = range(2, 99, 2), range(1, 99)
FALLS = {"script": except_in(EVEN, right_and_wrong, fallback)}
HOPELESS = {"script": hopeless}
CASES: dict[str, Case] = {
    "non_finite": Case({"harm": Harm(overflows, (1, 5, 7))}, metric("nonfinite_gradients", bool)),
    "broken_weights": Case(
        {"harm": Harm(loses_a_weight, (1, 3, 5))}, metric("nonfinite_weights", bool)
    ),
    "no_signal": Case(
        {"script": except_in((3, 4), right_and_wrong, idle)},
        metric("grad_norm", lambda norm: norm == 0),
    ),
    "all_invalid": Case({"script": fallback}, metric("validity", lambda share: share == 0)),
    "update_collapse": Case(FALLS, fell, {"collapse_errors": 1.0}),
    "collapse_share": Case(
        FALLS,
        fell,
        {
            "collapse_errors": 1.0,
            "collapse_least": 3,
            "actions": {"update_collapse": ["roll_back"]},
        },
    ),
    "validity": Case(
        {"script": except_in((1, 4, 7), fallback, right_and_wrong)},
        metric("validity", lambda share: share == 0),
        {"patience": 2},
    ),
    "entropy_floor": Case(
        {"harm": Harm(is_sharpened, (1, 4, 7))},
        lambda run, step: run.numbers(step)["entropy"] < 0.1 * run.numbers(1)["entropy"],
        {"patience": 2, "baseline_steps": 1},
    ),
    "entropy_ceiling": Case(
        {"harm": Harm(is_blurred, (1, 6, 9)), "before": is_sharpened},
        lambda run, step: run.numbers(step)["entropy"] > 4 * run.numbers(1)["entropy"],
        {"patience": 2, "baseline_steps": 1},
    ),
    "kl": Case(
        {"beta": 0.01},
        lambda run, step: run.numbers(step)["kl"] > 1e-9 >= run.numbers(1)["kl"],
        {"patience": 1, "kl_ceiling": 1e-9, "kl_spike": 1e30},
    ),
    "kl_spike": Case(
        {"beta": 0.01, "harm": Harm(lambda model: model.lm_head.weight.mul_(30), (1,))},
        metric("kl", lambda nats: nats > 5),
    ),
    "grad_norm": Case(
        {
            "script": except_in((13, 14, 15), hopeless, right_and_wrong),
            "advantage_estimator": "group_centered",
        },
        lambda run, step: run.numbers(step)["grad_norm"] > 20 * run.numbers(12)["grad_norm"],
    ),
    "flat_reward": Case(
        HOPELESS, metric("reward_max", lambda best: best <= 0), {"reward_patience": 2}
    ),
    "dead_groups": Case(
        HOPELESS, metric("dead_groups", lambda share: share == 1), {"dead_patience": 2}
    ),
    "cost_noise": Case(
        HOPELESS, metric("zero_variance_groups", lambda share: share == 0), {"dead_patience": 2}
    ),
    "solved": Case(
        {"script": mastered}, metric("accuracy", lambda share: share == 1), {"dead_patience": 2}
    ),
    "tool_failures": Case(
        {"script": except_in((1,), failing, right_and_wrong)},
        metric("tool_failures", lambda share: share > 0.6),
        {"patience": 1, "baseline_steps": 1},
    ),
    "repairs": Case(
        {"script": except_in((1,), slovenly, right_and_wrong)},
        metric("repairs_per_call", lambda number: number == 1),
        {"patience": 1, "baseline_steps": 1},
    ),
    "nothing_learnt": Case(  # what moves the weights is the momentum of the first step
        {"script": except_in((1,), idle, right_and_wrong)},
        metric("grad_norm", lambda norm: norm == 0),
        {"nothing_patience": 2},
    ),
}


@pytest.fixture
def play(tiny_model: Any, tokenizer: Any, tmp_path: Path) -> Callable[..., Run]:
    """Plays a case to its end, with a way back to every step."""

    def played(case: Case, guards: dict[str, Any], steps: int) -> Run:
        settings = {**case.options, "max_steps": steps, "guards": guards}
        script, harm = (settings.pop(key, None) for key in ("script", "harm"))
        model = deepcopy(tiny_model)
        with torch.no_grad():
            settings.pop("before", lambda model: None)(model)
        run = Run(rate=1e-3)
        trainer = scripted(
            model,
            deepcopy(tokenizer),
            tmp_path / f"run-{steps}",
            script or right_and_wrong,
            settings={**ONE_AT_A_TIME, **settings},
            on_metrics=lambda step, numbers: run.told.append(numbers),
        )
        watch(trainer._guard_callback.guards, run)
        if harm is not None:
            trainer.add_callback(harm)
        states = recorded(trainer)
        with listening("adapters.trl.callbacks", run):
            try:
                trainer.train()
            except TrainingStopped as stop:
                run.diagnosis = str(stop)
        moving = zip(states.weights, states.optimizer, states.schedule, strict=True)
        run.states = [State(w, {"optimizer": o, "schedule": s}) for w, o, s in moving]
        return run

    return played


ONE_AT_A_TIME: dict[str, Any] = {
    "dynamic_sampling": False,
    "beta": 0.0,
    "lr_scheduler_type": "constant",
    "snapshot_steps": 1,
    "snapshot_keep": 99,
}
LONGEST = {"grad_norm": 17, "all_invalid": 10, "entropy_ceiling": 11, "validity": 9}
LONGEST |= {"entropy_floor": 9, "no_signal": 4, "repairs": 3, "cost_noise": 3, "solved": 3}


def test_every_guard_has_a_case() -> None:
    assert set(CASES) == set(GUARD_NAMES)


@pytest.mark.parametrize("guard", sweep(GUARDS, QUICK["trl"], lambda guard: guard.name))
def test_a_guard_does_all_that_its_list_promises(guard: Guard, play: Any) -> None:
    case = CASES[guard.name]
    run = play(case, alone(guard.name, **case.config), LONGEST.get(guard.name, 8))
    check_all_actions(run, guard, case)


# A run that learns nothing, with all guards on


def thorough(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """As the expert plays, with a wrong answer in every other rollout."""
    rollouts = []
    for place, row in enumerate(inputs):
        note = f"<|im_end|>The number is {number_of(row)}"
        said = [call("read", note=row["task_id"]), call("count", text=note)]
        rollouts.append([*said, call("answer", value=number_of(row) if place % 2 else 99)])
    return rollouts


def test_a_run_whose_rollouts_all_run_out_of_tokens_says_so_and_stops(play: Any) -> None:
    options = {"script": thorough, "max_completion_length": 100, "dynamic_sampling": True}
    case = Case({**options, "max_draws": 1.0}, lambda run, step: True)
    run = play(case, {"nothing_patience": 2}, 45)
    length = check_silent(run, allowed=100)

    enough = Case({**options, "max_completion_length": length}, lambda run, step: True)
    assert play(enough, {"nothing_patience": 2}, 2).numbers(2)["updates"] == 2.0


@pytest.mark.slow  # its decisions are held by numbers in test_guards
def test_a_ceiling_below_every_norm_is_the_cause_that_is_told(play: Any) -> None:
    guards = {"grad_norm_ceiling": 1e-3, "nothing_patience": 2}
    check_held_by_the_ceiling(play(Case({}, lambda run, step: True), guards, 45))


def test_a_return_takes_optimizer_and_schedule_back_and_nothing_that_is_drawn(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Under a rate that falls; from PyTorch's generator the rollouts are drawn."""
    asked, random = list[str](), list[torch.Tensor]()

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        asked.append(inputs[0]["task_id"])
        return fallback_in(4)(batch, inputs)  # type: ignore[no-any-return]

    guards = {"collapse_errors": 1.0}
    trainer = make(script, settings={"snapshot_steps": 1, "max_steps": 5, "guards": guards})
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


# One at a time, with what else there is to see


def test_an_all_fallback_batch_moves_neither_weights_nor_momentum_nor_schedule(make: Make) -> None:
    seen: list[dict[str, float]] = []
    trainer = make(
        fallback_in(2),
        settings={"guards": {"actions": {"update_collapse": []}}},
        on_metrics=lambda step, numbers: seen.append(numbers),
    )
    trainer.train()
    states = trainer.recorder
    assert seen[1]["validity"] == 0.0
    assert seen[1]["grad_norm"] > 0
    assert [line["skipped_updates"] for line in seen] == [0, 1, 1, 1]
    assert [line["updates"] for line in seen] == [1, 1, 2, 3]
    assert states.moved(1) > 0
    assert states.moved(2) == 0.0
    assert same(states.optimizer[2], states.optimizer[1])
    assert same(states.schedule[2], states.schedule[1])
    assert states.optimizer[1]["state"][0]["step"] == 1
    assert states.moved(3) > 0
    assert states.optimizer[3]["state"][0]["step"] == 2


def test_guards_that_only_warn_let_that_batch_move_the_weights(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = make(fallback_in(2), settings={"guards": {"only_warn": True}, "max_steps": 2})
    trainer.train()
    assert trainer.recorder.moved(2) > 0
    assert not (Path(trainer.args.output_dir) / "snapshots").exists()
    assert "no turn of the step held a valid call" in caplog.text


def test_momentum_alone_moves_nothing_where_there_is_nothing_to_learn(make: Make) -> None:
    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        return [[call("answer", value=0)]] * 4 if batch == 2 else right_and_wrong(batch, inputs)

    trainer = make(script, settings={"max_steps": 3})
    trainer.train()
    assert trainer.recorder.moved(1) > 0
    assert trainer.recorder.moved(2) == 0.0
    assert same(trainer.recorder.optimizer[2], trainer.recorder.optimizer[1])
    assert trainer.recorder.moved(3) > 0


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
    from tests.adapters.trl.scripted_trl import ScriptedStable

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


def test_a_nan_is_seen_and_its_update_is_not_made(make: Make, tiny_model: Any) -> None:
    told: dict[int, dict[str, float]] = {}
    trainer = with_far_reference(make, tiny_model, 2, max_steps=3)
    trainer._on_metrics = told.__setitem__
    trainer.train()
    assert [math.isfinite(told[step]["loss"]) for step in (1, 2, 3)] == [True, False, True]
    states = trainer.recorder
    assert states.moved(1) > 0
    assert states.moved(2) == 0.0
    assert same(states.optimizer[2], states.optimizer[1])
    assert same(states.schedule[2], states.schedule[1])
    assert states.moved(3) > 0
    assert all(weight.isfinite().all() for weight in states.weights[3].values())


def test_without_guards_the_same_nan_destroys_the_weights(make: Make, tiny_model: Any) -> None:
    trainer = with_far_reference(make, tiny_model, 2, max_steps=2, guards={"only_warn": True})
    trainer.train()
    assert not all(weight.isfinite().all() for weight in trainer.recorder.weights[2].values())


def test_one_nan_after_the_other_rolls_back_and_then_stops_with_a_diagnosis(
    make: Make, tiny_model: Any
) -> None:
    trainer = with_far_reference(make, tiny_model, 2, 3, 4, 5, 6, 7, max_steps=9)
    with pytest.raises(TrainingStopped, match=r"(?s)step 6.*loss.*not finite.*1\. Look for one"):
        trainer.train()
    states = trainer.recorder
    assert len(states.weights) == 7
    assert [states.moved(step) for step in (2, 3)] == [0.0, 0.0]
    assert same(states.weights[4], states.weights[0])
    assert same(states.optimizer[4]["state"], {})
    assert same(states.weights[6], states.weights[0])
    assert not list(Path(trainer.args.output_dir).glob("checkpoint-*"))


def test_a_collapse_of_validity_goes_back_to_the_last_sound_snapshot(make: Make) -> None:
    seen: list[dict[str, float]] = []
    trainer = make(
        fallback_in(4),
        settings={"snapshot_steps": 1, "max_steps": 5, "guards": {"collapse_errors": 1.0}},
        on_metrics=lambda step, numbers: seen.append(numbers),
    )
    trainer.train()
    states = trainer.recorder
    assert [line["roll_backs"] for line in seen] == [0, 0, 0, 1, 1]
    assert same(states.weights[4], states.weights[2])
    assert same(states.optimizer[4]["state"], states.optimizer[2]["state"])
    assert same(states.schedule[4], states.schedule[2])
    assert seen[4]["learning_rate_scale"] == 0.5
    assert seen[4]["learning_rate"] == pytest.approx(0.5 * states.schedule[4]["_last_lr"][0])
    assert states.moved(5) > 0


def test_an_entropy_that_collapses_is_rolled_back(make: Make) -> None:
    """Real entropy of the real model, which is taught a few sentences until it knows no others."""
    seen: list[dict[str, float]] = []

    def one_wrong(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        right = [call("answer", value=10 + int(inputs[0]["task_id"].rpartition("-")[2]))]
        return [["I do not know.<|im_end|>"], right, right, right]

    guards = {"baseline_steps": 1, "patience": 2, "entropy_floor": 0.5, "actions": NEVER}
    trainer = make(
        one_wrong,
        settings={
            "learning_rate": 6e-2,
            "lr_scheduler_type": "constant",
            "max_steps": 8,
            "guards": guards,
            "snapshot_steps": 100,
        },
        on_metrics=lambda step, numbers: seen.append(numbers),
    )
    trainer.train()
    states = trainer.recorder
    back = next(step for step, line in enumerate(seen, 1) if line["roll_backs"])
    assert "entropy_floor: entropy is" in trainer.reasons[back - 1][0]
    assert seen[back - 1]["entropy"] < 0.5 * seen[0]["entropy"]
    assert states.moved(back - 1, since=0) > 0
    assert same(states.weights[back], states.weights[0])
    assert seen[back]["entropy"] == pytest.approx(seen[0]["entropy"], rel=1e-4)  # other tokens


def test_a_policy_that_drifts_from_its_reference_learns_at_half_the_rate(
    make: Make, tokenizer: Any, tiny_model: Any
) -> None:
    moved = {}
    for name, ceiling in (("free", 1e9), ("held", 1e-9)):
        guards = {"kl_ceiling": ceiling, "kl_spike": 1e30, "patience": 1, "actions": NEVER}
        settings = {"beta": 0.01, "max_steps": 2, "guards": guards}
        trainer = make(right_and_wrong, model=deepcopy(tiny_model), settings=settings)
        trainer.train()
        states = trainer.recorder
        moved[name] = {n: states.weights[2][n] - states.weights[1][n] for n in states.weights[2]}
        assert states.schedule[1]["_last_lr"][0] == pytest.approx(5e-4)
        assert states.schedule[2]["last_epoch"] == 2
    for name, free in moved["free"].items():
        assert (moved["held"][name] - free / 2).abs().max() < 1e-6 + 1e-3 * free.abs().max()


def test_a_reward_that_never_comes_stops_the_run(make: Make) -> None:
    trainer = make(
        always(*[[call("answer", value=0)]] * 4),
        settings={"max_steps": 20, "guards": {"reward_patience": 2}},
    )
    with pytest.raises(TrainingStopped, match="flat_reward: no rollout earned more than 0"):
        trainer.train()
    assert trainer.state.global_step == 6
    assert trainer.recorder.moved(6, since=0) == 0.0


def test_a_way_back_that_is_not_there_is_a_stop(make: Make) -> None:
    trainer = make(
        fallback_in(1, 2), settings={"guards": {"actions": {"all_invalid": ["roll_back"]}}}
    )
    trainer._guard_callback.guards._healthy_steps.clear()
    with pytest.raises(TrainingStopped, match=r"(?s)there are none.*Lower snapshot_steps"):
        trainer.train()
