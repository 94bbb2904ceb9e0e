"""Guards, as pure numbers: what trips each, escalation, what is told, going back, and resuming.

That a collapse is noticed in time, and a healthy run left alone, is tested in
`tests/exploits/test_silent_collapse.py`; that trainers do what guards decide, with each trainer.
"""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from adapters.training.guards import Guards
from adapters.training.guards.checks import GUARDS
from adapters.training.guards.config import GUARD_NAMES, Action, GuardConfig
from toolgym.runs.metrics import METRICS, broken

HEALTHY = {
    "reward": 0.4,
    "reward_max": 1.0,
    "accuracy": 0.4,
    "answered": 0.9,
    "refused_answerable": 0.05,
    "unfinished": 0.05,
    "validity": 0.95,
    "turns": 256.0,
    "rollouts": 64.0,
    "entropy": 0.06,
    "kl": 0.01,
    "ratio": 1.0,
    "mismatch": 0.001,
    "grad_norm": 0.01,
    "loss": 0.1,
    "dead_groups": 0.25,
}


def watch(guards, steps, first=1, **changes):
    """Observe equal steps, and return the decisions."""
    return [guards.observe(step, {**HEALTHY, **changes}) for step in range(first, first + steps)]


def actions(decisions):
    return [decision.action.value for decision in decisions]


def found(decisions, guard):
    """By step the action that a guard asked for."""
    return {d.step: f.action.value for d in decisions for f in d.findings if f.guard == guard}


# What trips a guard


@pytest.mark.parametrize(
    ("guard", "changes", "steps"),
    [
        ("success", {"accuracy": 0.05}, 1),
        ("success", {"accuracy": 0.25}, 8),
        ("answering", {"answered": 0.2}, 1),
        ("answering", {"refused_answerable": 0.6}, 1),
        ("unfinished", {"unfinished": 0.6}, 1),
        ("validity", {"validity": 0.4}, 1),
        ("held_out", {"held_out_accuracy": 0.2, "held_out_episodes": 64.0}, 1),
        ("entropy", {"entropy": 0.004}, 5),
        ("entropy", {"entropy": 0.3}, 5),
        ("kl", {"kl": 0.6}, 5),
        ("mismatch", {"mismatch": 0.1}, 5),
        ("mismatch", {"ratio": 2.0}, 5),
        ("gradient", {"grad_norm": 0.11}, 1),
        ("gradient", {"kl": math.inf}, 1),
        ("gradient", {"nonfinite_gradients": 3}, 1),
        ("gradient", {"nonfinite_weights": 1}, 1),
        ("growth", {"grad_norm": 0.6}, 10),
        ("idle", {"dead_groups": 1.0}, 10),
        ("idle", {"grad_norm": 0.0}, 10),
        ("idle", {"validity": 0.0}, 10),
        ("idle", {"reward": 0.0, "reward_max": 0.0, "accuracy": 0.0}, 10),
        ("solved", {"dead_groups": 1.0, "accuracy": 0.95}, 10),
    ],
)
def test_a_guard_trips_where_there_is_evidence_enough(guard, changes, steps):
    guards = Guards()
    watch(guards, 20, held_out_accuracy=0.6, held_out_episodes=64.0)
    tripped = found(watch(guards, 10, first=21, **changes), guard)
    assert min(tripped) <= 20 + steps
    assert steps < 5 or min(tripped) > 21


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": 0.31},
        {"validity": 0.48},
        {"unfinished": 0.25},
        {"entropy": 0.011},
        {"entropy": 0.005, "accuracy": 0.95},
        {"entropy": 0.23},
        {"kl": 0.49},
        {"grad_norm": 0.09},
        {"mismatch": 0.04},
        {"ratio": 1.4},
        {"dead_groups": 0.95},
        {"validity": math.nan, "accuracy": None, "answered": math.nan},
        {"held_out_accuracy": 0.55, "held_out_episodes": 8.0},
    ],
)
def test_within_the_bounds_a_guard_does_nothing(changes):
    guards = Guards()
    watch(guards, 20, held_out_accuracy=0.6, held_out_episodes=64.0)
    assert set(actions(watch(guards, 20, first=21, **changes))) == {"ok"}


def test_a_fall_of_few_samples_is_taken_for_chance_and_one_of_many_is_not():
    for turns, expected in ((6.0, "ok"), (96.0, "roll_back")):
        guards = Guards()
        watch(guards, 1, validity=0.6, turns=turns)
        assert actions(watch(guards, 1, first=2, validity=0.1, turns=turns)) == [expected]


def test_evaluations_of_few_tasks_need_more_of_them():
    needed = []
    for episodes in (8.0, 64.0):
        guards = Guards()
        watch(guards, 8, held_out_accuracy=0.6, held_out_episodes=episodes)
        fallen = {"held_out_accuracy": 0.2, "held_out_episodes": episodes}
        needed.append(min(found(watch(guards, 16, first=9, **fallen), "held_out")) - 8)
    assert needed[1] < needed[0] <= 8


def test_a_mismatch_is_compared_with_what_the_run_began_with_up_to_a_limit():
    usual = Guards()
    watch(usual, 20, mismatch=0.02)
    assert set(actions(watch(usual, 20, first=21, mismatch=0.09))) == {"ok"}
    assert found(watch(Guards(), 5, mismatch=0.3), "mismatch") == {5: "warn"}


def test_steps_with_equal_outcomes_do_not_make_the_first_real_gradient_a_spike():
    guards = Guards()
    watch(guards, 9, dead_groups=1.0, grad_norm=0.001)
    assert set(actions(watch(guards, 30, first=10, grad_norm=1.0))) == {"ok"}


def test_a_higher_gradient_that_stays_is_skipped_once():
    guards = Guards()
    watch(guards, 20)
    assert actions(watch(guards, 8, first=21, grad_norm=0.2)) == ["skip", *["ok"] * 7]


def test_steps_without_the_metric_neither_help_nor_harm():
    """A second update from the same rollouts has a gradient and no rollouts of its own."""
    guards = Guards()
    told = [
        guards.observe(
            step, {"grad_norm": 0.01} if step % 2 else {**HEALTHY, "dead_groups": 1.0}
        ).action.value
        for step in range(1, 21)
    ]
    assert told == ["ok"] * 19 + ["warn"]


# A run that learns nothing


def test_a_run_that_learns_nothing_is_warned_of_twice_and_then_stopped():
    decisions = watch(Guards(), 30, reward=0.0, reward_max=0.0, accuracy=0.0)
    assert found(decisions, "idle") == {10: "warn", 20: "warn", 30: "stop"}
    assert "no learning signal in 30 successive steps" in decisions[-1].diagnosis
    assert "toolgym preflight" in decisions[-1].diagnosis


def test_rollouts_that_run_out_of_tokens_are_the_first_cause():
    (decision,) = watch(Guards(), 10, grad_norm=0.0, unfinished=1.0)[9:]
    assert "100% of the rollouts ran out of tokens" in decision.reasons[0]
    assert "max_completion_length" in decision.findings[0].advice


def test_a_run_that_learns_now_and_then_goes_on():
    guards = Guards()
    for first in range(1, 200, 15):
        watch(guards, 1, first=first)
        idle = watch(guards, 14, first=first + 1, dead_groups=1.0)
        assert found(idle, "idle") == {first + 10: "warn"}


def test_few_rollouts_may_all_be_wrong_by_chance():
    decisions = watch(Guards(), 60, dead_groups=1.0, rollouts=8.0)
    assert found(decisions, "idle") == {40: "warn", 50: "warn", 60: "stop"}


def test_a_gradient_of_0_moves_nothing():
    assert not any(decision.update for decision in watch(Guards(), 3, grad_norm=0.0))


def test_tasks_that_are_solved_never_stop_the_run():
    assert set(actions(watch(Guards(), 200, dead_groups=1.0, accuracy=0.97))) == {"ok", "warn"}


def test_how_long_nothing_may_be_learned_is_a_setting():
    decisions = watch(Guards(GuardConfig(idle_steps=3)), 9, dead_groups=1.0)
    assert found(decisions, "idle") == {3: "warn", 6: "warn", 9: "stop"}


# Escalation


def test_what_does_not_help_is_followed_by_something_stronger():
    guards = Guards()
    watch(guards, 20)
    loud = [(d.step, d.action.value) for d in watch(guards, 30, first=21, kl=0.6) if d.findings]
    assert loud == [(25, "lower_lr"), (30, "roll_back"), (35, "roll_back"), (40, "stop"), *loud[4:]]
    assert guards.learning_rate_scale == 0.125


def test_a_nan_now_and_then_is_skipped_and_never_ends_the_run():
    guards = Guards()
    told = [
        guards.observe(step, {**HEALTHY, **({"loss": math.nan} if step % 60 == 0 else {})})
        for step in range(1, 1000)
    ]
    assert set(actions(told)) == {"ok", "skip"}
    assert guards.metrics()["skipped_updates"] == 16


def test_one_nan_after_the_other_is_rolled_back_and_then_ends_the_run():
    told = actions(watch(Guards(), 5, loss=math.nan))
    assert told == ["skip", "skip", "roll_back", "roll_back", "stop"]


def test_several_guards_that_see_the_same_collapse_lower_the_rate_once():
    guards = Guards()
    watch(guards, 20)
    watch(guards, 6, first=21, accuracy=0.1, answered=0.2, unfinished=0.7)
    assert guards.learning_rate_scale == 0.5


def test_a_lowered_rate_does_not_let_a_broken_gradient_pass():
    guards = Guards()
    watch(guards, 4, kl=0.6)
    (decision,) = watch(guards, 1, first=5, kl=0.6, loss=math.nan)
    assert decision.action is Action.LOWER_LR
    assert not decision.update


def test_the_learning_rate_is_not_lowered_for_ever():
    guards = Guards(GuardConfig(actions={"kl": ("lower_lr",)}))
    watch(guards, 60, kl=0.6)
    assert guards.learning_rate_scale == 1 / 16


def test_after_four_roll_backs_the_fifth_is_a_stop_that_says_so():
    guards = Guards(GuardConfig(actions={"gradient": ("roll_back",)}))
    decisions = watch(guards, 5, loss=math.nan)
    assert actions(decisions) == ["roll_back"] * 4 + ["stop"]
    assert "The last 4 roll-backs did not help" in decisions[-1].diagnosis


@pytest.mark.parametrize(("every", "expected"), [(101, Action.ROLL_BACK), (100, Action.STOP)])
def test_a_roll_back_is_forgotten_after_a_hundred_healthy_updates(every, expected):
    guards = Guards(GuardConfig(actions={"gradient": ("roll_back",)}, max_roll_backs=2))
    for step in range(1, 5 * every + 1):
        decision = guards.observe(step, {**HEALTHY, **({} if step % every else {"loss": math.nan})})
        if decision.action is Action.STOP:
            break
    assert decision.action is expected


def test_tasks_that_have_become_harder_are_gone_back_for_once():
    """Restored weights do no better then, so what they do is compared with itself from then on."""
    guards = Guards()
    watch(guards, 30, accuracy=0.8)
    decisions = watch(guards, 300, first=31, accuracy=0.4)
    assert [a for a in actions(decisions) if a != "ok"] == ["warn", "lower_lr", "roll_back"]


def test_only_warning_reports_and_acts_on_nothing():
    guards = Guards(GuardConfig(only_warn=True))
    decisions = watch(guards, 20, loss=math.nan, kl=0.6)
    assert set(actions(decisions)) == {"warn"}
    assert all(decision.update and decision.reasons for decision in decisions)
    assert guards.learning_rate_scale == 1.0


def test_a_guard_without_actions_is_off_and_blames_no_weights():
    guards = Guards(GuardConfig(actions={"kl": ()}))
    assert set(actions(watch(guards, 20, kl=0.6))) == {"ok"}
    assert guards.choose_snapshot([0, 10, 19]) == 19


# What is told, and how often


def test_what_is_found_again_is_told_at_growing_distances_with_how_often():
    guards = Guards(GuardConfig(actions={"gradient": ("skip",)}))
    lines = {d.step: d.log_lines[0] for d in watch(guards, 130, loss=math.nan) if d.log_lines}
    assert list(lines) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert lines[1].startswith(
        "step 1, skip, gradient: loss is not finite. Lower the learning rate"
    )
    assert lines[8] == "step 8, skip, gradient: loss is not finite. Tripped 8 times so far."


def test_a_stop_says_what_was_seen_and_what_to_change():
    guards = Guards()
    watch(guards, 20)
    decision = next(d for d in watch(guards, 60, first=21, kl=0.6) if d.diagnosis)
    lines = decision.diagnosis.splitlines()
    assert lines[0] == f"Training stops at step {decision.step}."
    assert lines[1] == f"- {decision.reasons[0]}."
    assert lines[-1].startswith("1. Lower the learning rate")


# Where to go back to


def test_the_latest_snapshot_whose_rollouts_showed_no_harm_is_chosen():
    guards = Guards()
    watch(guards, 20)
    watch(guards, 5, first=21, kl=0.6)
    assert guards.choose_snapshot([0, 10, 19, 20, 21, 24]) == 21  # tripped over steps 21 to 25


def test_no_weights_are_healthy_whose_mean_was_found_too_low():
    guards = Guards()
    watch(guards, 40)
    decisions = watch(guards, 12, first=41, accuracy=0.25)
    assert found(decisions, "success")
    assert max(guards.healthy_steps) < 41


def test_a_snapshot_that_led_to_the_same_place_twice_is_passed_over():
    guards = Guards()
    watch(guards, 20)
    assert guards.choose_snapshot([0, 8, 16]) == 16
    assert guards.choose_snapshot([0, 8, 16]) == 8
    assert guards.choose_snapshot([0]) == 0
    assert guards.choose_snapshot([0]) == 0
    assert guards.choose_snapshot([7]) is None


def test_weights_that_were_returned_to_are_passed_over_under_their_new_number_too():
    """A trainer that writes a snapshot right after a return writes the same weights again."""
    guards = Guards()
    watch(guards, 20)
    assert guards.choose_snapshot([0, 8, 16]) == 16
    watch(guards, 1, first=21)
    assert guards.choose_snapshot([0, 8, 16, 20]) == 8


# Resuming

numbers = st.sampled_from([0.0, 0.004, 0.05, 0.3, 0.6, 0.95, 12.0, math.nan, math.inf])
keys = [*sorted(HEALTHY), "held_out_accuracy", "nonfinite_weights"]
steps_of_metrics = st.lists(
    st.dictionaries(st.sampled_from(keys), numbers, max_size=8), min_size=1, max_size=40
)


@settings(max_examples=40)
@given(steps_of_metrics, st.data())
def test_a_resumed_run_decides_as_the_unbroken_one(metrics, data):
    cut = data.draw(st.integers(0, len(metrics)))
    config = GuardConfig(errors=1.0, idle_steps=2)
    unbroken, first, second = Guards(config), Guards(config), Guards(config)

    def observed(guards, start, stop):
        told = []
        for step in range(start, stop):
            decision = guards.observe(step + 1, metrics[step])
            back = decision.action is Action.ROLL_BACK
            chosen = guards.choose_snapshot(range(step)) if back else None
            told.append((decision, chosen, guards.metrics()))
        return told

    expected = observed(unbroken, 0, len(metrics))
    told = observed(first, 0, cut)
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    assert told + observed(second, cut, len(metrics)) == expected
    assert second.state_dict() == unbroken.state_dict()


@settings(max_examples=40)
@given(steps_of_metrics)
def test_any_numbers_are_decided_upon_and_no_update_follows_a_broken_one(metrics):
    guards = Guards()
    for step, values in enumerate(metrics, 1):
        decision = guards.observe(step, values)
        if broken(values) or decision.action in (Action.ROLL_BACK, Action.STOP):
            assert not decision.update
        assert bool(decision.diagnosis) == (decision.action is Action.STOP)
        assert 1 / 16 <= decision.learning_rate_scale <= 1


# Config and table


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"actions": {"entropy_floor": ("warn",)}}, "entropy"),
        ({"actions": {"kl": ("explode",)}}, "roll_back"),
        ({"entropy_floor": 1.5}, "less than 1"),
        ({"entropy_flor": 0.1}, "not permitted"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(values, told):
    with pytest.raises(ValidationError, match=told):
        GuardConfig.model_validate(values)


def test_a_config_survives_the_run_folder():
    config = GuardConfig(actions={"kl": (Action.WARN,)}, kl_limit=0.25)
    assert GuardConfig.model_validate(json.loads(config.model_dump_json())) == config


def test_guards_have_the_names_of_the_config_and_read_metrics_that_trainers_write():
    assert tuple(guard.name for guard in GUARDS) == GUARD_NAMES
    assert {key for guard in GUARDS for key in guard.reads} <= METRICS.keys()
