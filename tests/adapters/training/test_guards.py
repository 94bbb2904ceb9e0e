"""Guards, as pure numbers: what trips each, patience, what is told, going back, and resuming.

That trainers do what guards decide is tested with each trainer.
"""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from adapters.training.guards.config import Action, GuardConfig, Room, Setup
from adapters.training.guards.guards import Guards
from toolgym.runs.metrics import broken

HEALTHY = {
    "reward": 0.4,
    "reward_max": 1.0,
    "accuracy": 0.3,
    "validity": 0.95,
    "turns": 96.0,
    "entropy": 0.06,
    "kl": 0.01,
    "grad_norm": 0.01,
    "loss": 0.1,
    "dead_groups": 0.25,
    "zero_variance_groups": 0.1,
    "tool_failures": 0.05,
    "repairs_per_call": 0.02,
}


def watch(guards, steps, first=1, **changes):
    """Observe equal steps, and return the decisions."""
    return [guards.observe(step, {**HEALTHY, **changes}) for step in range(first, first + steps)]


def actions(decisions):
    return [decision.action.value for decision in decisions]


def tripped(decision):
    return {finding.guard: finding.action.value for finding in decision.findings}


# The collapses of the field, as they were reported


def test_a_run_whose_calls_all_fail_alike_ends_long_before_its_351_steps():
    """The extra null arguments of a 1.7B model: -1.25 at step 10, 0.01 at 20, then 0 for ever."""
    guards = Guards(setup=Setup(group_size=6, parsing="strict", kl_weight=0.0))
    rewards = {10: -1.25, 20: 0.01}
    for step in range(1, 352):
        reward = rewards.get(step, 0.0)
        dead = {"dead_groups": 1.0, "zero_variance_groups": 1.0, "tool_failures": 1.0}
        decision = guards.observe(step, {"reward": reward, "validity": 0.5, "entropy": 0.1, **dead})
        if decision.action is Action.STOP:
            break
    assert step <= 30
    assert "lenient" in decision.diagnosis
    assert "What to change" in decision.diagnosis


def test_groups_of_two_that_destroy_the_format_end_after_six_updates_with_the_cure():
    """Six samples a step: no single fall is beyond chance, that they go on falling is."""
    guards = Guards(setup=Setup(group_size=2, divides_by_std=True, learning_rate=2e-6))
    for step, validity in enumerate([0.5, *[0.5, 0.0] * 37], 1):
        decision = guards.observe(step, {"validity": validity, "turns": 6.0, "grad_norm": 1.0})
        if decision.action.severity > Action.SKIP.severity:
            break
    assert tripped(decision)["collapse_share"] == "stop"
    assert guards.metrics()["updates"] == 6
    assert "groups of 2 it makes every advantage the same size" in decision.advice[0]
    assert "were at once followed by a collapse" in decision.diagnosis


# One guard at a time


@pytest.mark.parametrize(
    ("guard", "changes", "steps"),
    [
        ("validity", {"validity": 0.4}, 5),
        ("entropy_floor", {"entropy": 0.005}, 5),
        ("entropy_ceiling", {"entropy": 0.25}, 5),
        ("kl", {"kl": 0.6}, 5),
        ("kl_spike", {"kl": 11.0}, 1),
        ("grad_norm", {"grad_norm": 0.21}, 1),
        ("dead_groups", {"dead_groups": 1.0, "zero_variance_groups": 1.0}, 20),
        ("cost_noise", {"dead_groups": 1.0, "zero_variance_groups": 0.0}, 20),
        ("solved", {"dead_groups": 1.0, "accuracy": 0.95}, 20),
        ("tool_failures", {"tool_failures": 0.6}, 5),
        ("repairs", {"repairs_per_call": 0.6}, 5),
        ("flat_reward", {"reward": 0.0, "reward_max": 0.0, "accuracy": 0.0}, 10),
        ("all_invalid", {"validity": 0.0}, 1),
        ("update_collapse", {"validity": 0.4}, 1),
        ("no_signal", {"grad_norm": 0.0}, 1),
        ("non_finite", {"kl": math.inf}, 1),
        ("non_finite", {"nonfinite_gradients": 3}, 1),
        ("broken_weights", {"nonfinite_weights": 1}, 1),
    ],
)
def test_a_guard_trips_at_the_end_of_its_patience_and_not_before(guard, changes, steps):
    guards = Guards()
    watch(guards, 20)
    when = [d.step for d in watch(guards, steps, first=21, **changes) if guard in tripped(d)]
    assert when == [20 + steps]


@pytest.mark.parametrize(
    "changes",
    [
        {"validity": 0.48},
        {"entropy": 0.0065},
        {"entropy": 0.005, "accuracy": 0.95},
        {"entropy": 0.23},
        {"kl": 0.49},
        {"grad_norm": 0.19},
        {"dead_groups": 0.85},
        {"dead_groups": 1.0, "zero_variance_groups": 0.9, "drawn_groups": 4.0, "accuracy": 0.9},
        {"tool_failures": 0.5},
        {"repairs_per_call": 0.5},
        {"validity": math.nan, "tool_failures": None, "answered": math.nan},
    ],
)
def test_within_the_bounds_a_guard_does_nothing(changes):
    guards = Guards()
    watch(guards, 20)
    harmless = {"solved"}
    found = {name for d in watch(guards, 19, first=21, **changes) for name in tripped(d)}
    assert found <= harmless


def test_an_interruption_of_the_condition_begins_the_patience_anew():
    guards = Guards()
    watch(guards, 20)
    for first in range(21, 51, 5):
        assert set(actions(watch(guards, 4, first=first, kl=0.6))) == {"ok"}
        watch(guards, 1, first=first + 4)


def test_steps_without_the_metric_neither_help_nor_harm():
    """A second update from the same rollouts has a gradient and no validity."""
    guards = Guards()
    watch(guards, 20)
    told = []
    for step in range(21, 31):
        metrics = {"grad_norm": 0.01} if step % 2 else {**HEALTHY, "kl": 0.6}
        told.append(guards.observe(step, metrics).action.value)
    assert told == ["ok"] * 9 + ["lower_lr"]


def test_what_does_not_help_is_followed_by_something_stronger():
    guards = Guards()
    watch(guards, 20)
    loud = [a for a in actions(watch(guards, 20, first=21, kl=0.6)) if a != "ok"]
    assert loud == ["lower_lr", "roll_back", "roll_back", "stop"]
    assert guards.learning_rate_scale == 0.125


def test_a_nan_now_and_then_is_skipped_and_never_ends_the_run():
    guards = Guards()
    told = [
        guards.observe(step, {**HEALTHY, **({"loss": math.nan} if step % 60 == 0 else {})})
        for step in range(1, 1000)
    ]
    assert set(actions(told)) == {"ok", "skip"}
    assert guards.metrics()["skipped_updates"] == 16


def test_a_nan_after_the_other_is_rolled_back_and_then_ends_the_run():
    told = actions(watch(Guards(), 5, loss=math.nan))
    assert told == ["skip", "skip", "roll_back", "roll_back", "stop"]


def test_a_lowered_rate_does_not_let_a_broken_gradient_pass():
    guards = Guards(GuardConfig(patience=1))
    watch(guards, 20)
    decision = watch(guards, 1, first=21, kl=0.6, loss=math.nan)[0]
    assert decision.action is Action.LOWER_LR
    assert not decision.update


def test_the_learning_rate_is_not_lowered_for_ever():
    guards = Guards(GuardConfig(patience=1, actions={"kl": ("lower_lr",)}))
    watch(guards, 40, kl=0.6)
    assert guards.learning_rate_scale == 1 / 16


def test_after_four_roll_backs_the_fifth_is_a_stop_that_says_so():
    guards = Guards(GuardConfig(actions={"non_finite": ("roll_back",)}))
    decisions = watch(guards, 5, loss=math.nan)
    assert actions(decisions) == ["roll_back"] * 4 + ["stop"]
    assert "has not helped" in decisions[-1].diagnosis


def test_only_warning_reports_and_acts_on_nothing():
    decisions = watch(Guards(GuardConfig(only_warn=True)), 5, loss=math.nan)
    assert actions(decisions) == ["warn"] * 5
    assert all(decision.update and decision.reasons for decision in decisions)


def test_only_warning_leaves_the_learning_rate_alone():
    guards = Guards(GuardConfig(only_warn=True, patience=1, actions={"kl": ("lower_lr",)}))
    assert actions(watch(guards, 3, kl=0.6)) == ["warn"] * 3
    assert guards.learning_rate_scale == 1.0


def test_rewards_that_never_come_are_warned_of_twice_and_then_stop_the_run():
    decisions = watch(Guards(), 30, reward=0.0, reward_max=0.0, accuracy=0.0)
    told = {d.step: tripped(d)["flat_reward"] for d in decisions if "flat_reward" in tripped(d)}
    assert told == {10: "warn", 20: "warn", 30: "stop"}


def test_a_spike_makes_no_update_whatever_its_action():
    warned = Guards(GuardConfig(actions={"grad_norm": ("warn",)}))
    watch(warned, 20)
    (decision,) = watch(warned, 1, first=21, grad_norm=0.21)
    assert decision.action is Action.WARN
    assert not decision.update


def test_a_guard_without_actions_is_off():
    guards = Guards(GuardConfig(actions={"non_finite": ()}))
    assert set(actions(watch(guards, 5, loss=math.nan))) == {"ok"}


def test_absolute_bounds_of_entropy_hold_on_request_only():
    assert set(actions(watch(Guards(), 9, entropy=0.06))) == {"ok"}
    strict = Guards(GuardConfig(entropy_floor_nats=0.5))
    assert actions(watch(strict, 5, entropy=0.06))[-1] == "roll_back"
    loud = Guards(GuardConfig(entropy_ceiling_nats=2.0))
    assert actions(watch(loud, 5, entropy=2.5))[-1] == "lower_lr"


def test_costs_are_no_noise_in_the_update_where_dynamic_sampling_drops_dead_groups():
    noisy = {"dead_groups": 1.0, "zero_variance_groups": 0.0}
    found = [tripped(d) for d in watch(Guards(), 20, drawn_groups=12.0, **noisy)]
    assert "cost_noise" not in found[-1]
    assert "dead_groups" in found[-1]


def test_a_fall_of_few_samples_is_taken_for_chance_and_one_of_many_is_not():
    for turns, expected in ((6.0, "ok"), (96.0, "roll_back")):
        guards = Guards()
        watch(guards, 1, validity=0.5, turns=turns)
        assert actions(watch(guards, 1, first=2, validity=0.2, turns=turns)) == [expected]


def test_a_format_that_is_lost_for_good_in_the_first_steps_is_gone_back_for():
    guards = Guards()
    watch(guards, 3, turns=6.0, validity=0.6)
    told = watch(guards, 5, first=4, turns=6.0, validity=0.0, grad_norm=0.0)
    assert actions(told) == ["skip"] * 4 + ["roll_back"]
    assert guards.choose_snapshot(range(8)) == 2


def test_a_model_that_never_writes_a_valid_call_is_stopped_at_the_tenth_step():
    decisions = watch(Guards(), 10, validity=0.0)
    assert actions(decisions) == ["skip"] * 9 + ["stop"]
    assert "Warm up longer" in decisions[-1].diagnosis


def test_a_fall_without_an_update_before_it_is_not_the_updates_fault():
    guards = Guards()
    watch(guards, 1, loss=math.nan)
    assert actions(watch(guards, 1, first=2, validity=0.2)) == ["ok"]
    assert "collapse_share" not in guards.metrics()


# A run that learns nothing

NOTHING = {"grad_norm": 0.0, "learnt_tokens": 0.0, "rollouts": 32.0, "dead_groups": 1.0}
OUT_OF_TOKENS = {**NOTHING, "unfinished": 1.0, "clipped": 1.0, "accuracy": 0.0, "validity": 0.5}
HARD = {**NOTHING, "unfinished": 0.05, "accuracy": 0.02}
EASY = {**NOTHING, "unfinished": 0.0, "accuracy": 0.97}
DIVIDED = {**NOTHING, "unfinished": 0.0, "accuracy": 0.5}
FAULTY = {**NOTHING, "faults": 30.0, "unfinished": 0.0, "accuracy": 0.0}
DUMB = {**HEALTHY, "learnt_tokens": 900.0, "rollouts": 32.0, "grad_norm": 0.0}


def found_of(decisions, guard="nothing_learnt"):
    """By step what a guard found."""
    return {d.step: f for d in decisions for f in d.findings if f.guard == guard}


def test_a_run_without_a_learnt_token_is_warned_of_twice_and_then_stopped():
    decisions = watch(Guards(), 30, **OUT_OF_TOKENS)
    found = found_of(decisions)
    assert {step: f.action.value for step, f in found.items()} == {
        10: "warn",
        20: "warn",
        30: "stop",
    }
    assert found[20].reason.startswith("nothing was learnt in 20 steps in a row: 100% of the")
    assert decisions[-1].diagnosis.startswith("Training stops at step 30.\n- nothing_learnt: ")
    assert "1. Raise max_completion_length" in decisions[-1].diagnosis


@pytest.mark.parametrize(
    ("changes", "seen", "cure"),
    [
        (OUT_OF_TOKENS, "100% of the rollouts ran out of tokens", "Raise max_completion_length"),
        (HARD, "did equally badly, and 2% of the rollouts were right", "Play tasks that are some"),
        (EASY, "did equally well, and 97% of the rollouts were right", "Stop here, or go on with"),
        (DIVIDED, "done by all of its rollouts or by none", "Play tasks that are done now and"),
        (FAULTY, "left 94% of the rollouts unscored", "Repair the environment"),
        (DUMB, "taken over 9000 tokens, and its gradient was 0", "See that the parameters"),
    ],
)
def test_the_first_advice_is_against_the_cause_that_was_seen(changes, seen, cure):
    found = found_of(watch(Guards(), 10, **changes))[10]
    assert seen in found.reason
    assert found.advice[0].startswith(cure)


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (None, "Raise max_completion_length (it is 60), to twice as much"),
        (Room(178, 4000), "Raise max_completion_length (it is 60) to 178 or more"),
        (Room(55, 4000), "so the model writes more than it has to"),
        (Room(178, 90), "can read 90, so a larger max_completion_length (it is 60) alone does not"),
    ],
)
def test_the_length_that_would_have_sufficed_is_named_where_it_is_known(room, told):
    guards = Guards(setup=Setup(max_tokens=60, room=lambda: room))
    assert told in found_of(watch(guards, 10, **OUT_OF_TOKENS))[10].advice[0]


def test_a_single_update_in_between_begins_anew():
    guards = Guards()
    for first in range(1, 200, 15):
        decisions = watch(guards, 14, first=first, **OUT_OF_TOKENS)
        found = {step: f.action.value for step, f in found_of(decisions).items()}
        assert found == {first + 9: "warn"}
        watch(guards, 1, first=first + 14)


def test_tasks_that_are_learnt_are_warned_of_and_never_stop_the_run():
    decisions = watch(Guards(), 200, **EASY)
    assert {f.action.value for f in found_of(decisions).values()} == {"warn"}
    assert Action.STOP not in {decision.action for decision in decisions}
    asked_for = Guards(GuardConfig(actions={"nothing_learnt": ("stop",)}))
    assert watch(asked_for, 10, **EASY)[-1].action is Action.STOP


def test_how_long_nothing_may_be_learnt_is_a_setting_and_so_is_whether():
    short = watch(Guards(GuardConfig(nothing_patience=3)), 9, **OUT_OF_TOKENS)
    assert list(found_of(short)) == [3, 6, 9]
    assert short[-1].action is Action.STOP
    off = Guards(GuardConfig(actions={"nothing_learnt": (), "dead_groups": ()}))
    assert set(actions(watch(off, 100, **OUT_OF_TOKENS))) == {"skip"}


def test_guards_that_leave_every_update_out_are_named_with_their_own_advice():
    guards = Guards(GuardConfig(actions={"kl": ("skip",)}, patience=1))
    found = found_of(watch(guards, 10, kl=0.6))[10]
    assert found.reason.endswith("10 steps in a row: the updates were left out by kl (10)")
    assert found.advice[0].startswith("Lower the learning rate")


# A ceiling below what is usual


def test_a_run_that_such_a_ceiling_holds_is_stopped_with_the_ceiling_as_the_cause():
    decision = watch(Guards(GuardConfig(grad_norm_ceiling=0.001)), 30)[-1]
    assert decision.action is Action.STOP
    assert "left out by grad_norm (30)" in decision.diagnosis
    assert "1. Set grad_norm_ceiling to 0.02" in decision.diagnosis
    assert "Lower the learning rate" not in decision.diagnosis


def test_a_ceiling_that_fits_lowers_the_rate_at_its_third_trip_as_before():
    guards = Guards(GuardConfig(grad_norm_ceiling=0.05))
    watch(guards, 20)
    decisions = watch(guards, 3, first=21, grad_norm=0.06)
    assert actions(decisions) == ["skip", "skip", "lower_lr"]
    assert decisions[-1].advice[0].startswith("Lower the learning rate")


# What is told, and how often


def test_what_is_found_again_is_told_at_growing_distances_with_how_often():
    guards = Guards(GuardConfig(actions={"all_invalid": ("skip",), "nothing_learnt": ()}))
    told = {d.step: d.log_lines for d in watch(guards, 230, validity=0.0) if d.log_lines}
    lines = {step: [line for line in ls if "all_invalid" in line] for step, ls in told.items()}
    lines = {step: ls for step, ls in lines.items() if ls}
    assert list(lines) == [1, 2, 4, 8, 16, 32, 64, 128, 228]  # after a hundred steps in any case
    assert lines[1][0].startswith(
        "step 1, skip, all_invalid: no turn of the step held a valid call."
    )
    assert "so far" not in lines[1][0]
    assert lines[8][0].endswith("Seen 8 times so far.")
    assert len(lines[1][0]) > len(lines[8][0])  # all advice at first, then the likeliest


# When a roll-back is forgotten


def rolled_back(every, steps):
    """A run with a broken step now and then, each of which is rolled back."""
    guards = Guards(GuardConfig(actions={"non_finite": ("roll_back",)}, max_roll_backs=2))
    for step in range(1, steps + 1):
        broken_step = {"loss": math.nan} if step % every == 0 else {}
        decision = guards.observe(step, {**HEALTHY, **broken_step})
        if decision.action is Action.STOP:
            break
    return guards, decision


def test_a_roll_back_is_forgotten_after_a_hundred_healthy_updates():
    guards, decision = rolled_back(every=101, steps=1010)
    assert decision.action is Action.ROLL_BACK
    assert guards.metrics()["roll_backs"] == 10  # all that there were are counted all the same


def test_roll_backs_with_fewer_healthy_updates_between_them_end_the_run():
    _, decision = rolled_back(every=100, steps=1010)
    assert decision.step == 300
    assert "rolled back once more, but that has not helped 2 times" in decision.diagnosis


# Where to go back to


def test_the_latest_snapshot_whose_rollouts_showed_no_harm_is_chosen():
    guards = Guards()
    watch(guards, 20)
    watch(guards, 5, first=21, kl=0.6)
    assert guards.choose_snapshot([0, 10, 19, 20, 21, 24]) == 19


def test_a_snapshot_that_led_to_the_same_place_twice_is_passed_over():
    guards = Guards()
    watch(guards, 20)
    assert guards.choose_snapshot([0, 8, 16]) == 16
    assert guards.choose_snapshot([0, 8, 16]) == 8
    assert guards.choose_snapshot([0]) == 0
    assert guards.choose_snapshot([0]) == 0


def test_weights_that_were_returned_to_are_passed_over_under_their_new_number_too():
    """A trainer that writes a snapshot right after a return writes the same weights again."""
    guards = Guards()
    watch(guards, 20)
    assert guards.choose_snapshot([0, 8, 16]) == 16
    watch(guards, 1, first=21)
    assert guards.choose_snapshot([0, 8, 16, 20]) == 8


def test_a_guard_that_is_off_does_not_say_where_to_go_back_to():
    for actions, place in (({}, 0), ({"kl": ()}, 19)):
        guards = Guards(GuardConfig(kl_ceiling=0.001, actions=actions))
        watch(guards, 20)
        assert guards.choose_snapshot([0, 10, 19]) == place


# Resuming

numbers = st.sampled_from([0.0, 0.004, 0.05, 0.3, 0.6, 0.95, 12.0, math.nan, math.inf])
steps_of_metrics = st.lists(
    st.dictionaries(st.sampled_from([*sorted(HEALTHY), "nonfinite_weights"]), numbers, max_size=8),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40)
@given(steps_of_metrics, st.data())
def test_a_resumed_run_decides_as_the_unbroken_one(metrics, data):
    cut = data.draw(st.integers(0, len(metrics)))
    config = GuardConfig(baseline_steps=2, patience=2, memory=9, dead_patience=3)
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


def test_all_that_guards_remember_is_in_a_checkpoint():
    first, second = Guards(GuardConfig(patience=1)), Guards(GuardConfig(patience=1))
    watch(first, 20)
    watch(first, 3, first=21, kl=0.6)  # a lower rate, and then back twice
    first.choose_snapshot(range(21))
    watch(first, 2, first=24, grad_norm=0.02)
    state = first.state_dict()
    assert state["recent"] == state["roll_backs"] == 2
    second.load_state_dict(json.loads(json.dumps(state)))
    assert second.state_dict() == state


@settings(max_examples=40)
@given(steps_of_metrics)
def test_any_numbers_are_decided_upon_and_no_update_follows_a_broken_one(metrics):
    guards = Guards()
    for step, numbers in enumerate(metrics, 1):
        decision = guards.observe(step, numbers)
        if broken(numbers) or decision.action in (Action.SKIP, Action.ROLL_BACK, Action.STOP):
            assert not decision.update
        assert bool(decision.diagnosis) == (decision.action is Action.STOP)
        assert 1 / 16 <= decision.learning_rate_scale <= 1


# Config


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"actions": {"entropy": ("warn",)}}, "entropy_floor"),
        ({"actions": {"kl": ("explode",)}}, "roll_back"),
        ({"min_validity": 1.5}, "less than 1"),
        ({"collapse_least": 11}, "can never be among the last"),
        ({"entropy_flor": 0.1}, "not permitted"),
    ],
)
def test_a_config_that_cannot_be_meant_is_refused(values, told):
    with pytest.raises(ValidationError, match=told):
        GuardConfig.model_validate(values)


def test_a_config_survives_the_run_folder():
    config = GuardConfig(actions={"kl": (Action.WARN,)}, entropy_floor_nats=0.5)
    assert GuardConfig.model_validate(json.loads(config.model_dump_json())) == config
