"""Guards: real collapses of a small policy, the collapses of the field, patience, and resuming."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adapters.training.guard_advice import Setup, advice
from adapters.training.guard_checks import GUARDS
from adapters.training.guard_config import GUARD_NAMES, Action, GuardConfig
from adapters.training.guards import Guards
from adapters.training.metric_names import METRICS, broken, unknown

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


# A softmax policy over six arms for each of four tasks; the guards' decisions are carried out


class Toy:
    """One arm is right, three are valid and wrong, two are no call at all."""

    def __init__(self, rate, *, seed=0, rewards=(1.0, 0.2, 0.2, 0.2, 0.0, 0.0), **config):
        self.draw = np.random.default_rng(seed)
        self.rate, self.rewards = rate, np.array(rewards)
        self.guards = Guards(GuardConfig(**config))
        self.weights = np.tile([0.5, 0.3, 0.3, 0.3, -1.0, -1.0], (4, 1))
        self.reference = self.weights.copy()
        self.snapshots = {0: self.weights.copy()}
        self.step_number = 0

    def policy(self, weights=None):
        raised = np.exp(self.weights if weights is None else weights)
        return raised / raised.sum(axis=1, keepdims=True)

    def earned(self, arms):
        return self.rewards[arms]

    def step(self, harm=1.0):
        """Play, observe, and do what is decided; `harm` scales the update."""
        self.step_number += 1
        policy = self.policy()
        arms = np.stack([self.draw.choice(6, size=8, p=row) for row in policy])  # (tasks, members)
        rewards = self.earned(arms)
        with np.errstate(all="ignore"):
            advantages = rewards - rewards.mean(axis=1, keepdims=True)
            slopes = advantages[..., None] * (np.eye(6)[arms] - policy[:, None])
            gradient = slopes.mean(axis=1)
            numbers = self.metrics(policy, arms, rewards, gradient)
        decision = self.guards.observe(self.step_number, numbers)
        if decision.update:
            self.weights = self.weights + harm * self.rate * decision.learning_rate_scale * gradient
        if decision.action is Action.ROLL_BACK:
            self.restored = self.guards.choose_snapshot(self.snapshots)
            self.weights = self.snapshots[self.restored].copy()
        self.snapshots[self.step_number] = self.weights.copy()
        return decision

    def metrics(self, policy, arms, rewards, gradient):
        log, anchor = np.log(policy), np.log(self.policy(self.reference))
        return {
            "reward": float(rewards.mean()),
            "reward_max": float(rewards.max()),
            "accuracy": float((arms == 0).mean()),
            "validity": float((arms < 4).mean()),
            "turns": float(arms.size),
            "entropy": float(-(policy * log).sum(axis=1).mean()),
            "kl": float((policy * (log - anchor)).sum(axis=1).mean()),
            "grad_norm": float(np.linalg.norm(gradient)),
            "loss": float(-rewards.mean()),
            "dead_groups": float(np.mean([len(set(row)) == 1 for row in self.outcomes(arms)])),
            "zero_variance_groups": float(np.mean(np.ptp(rewards, axis=1) < 1e-8)),
        }

    def outcomes(self, arms):
        return np.where(arms == 0, 2, np.where(arms < 4, 1, 0))

    def run(self, steps):
        """Until something more than a skip or a warning is decided, or the steps are over."""
        for _ in range(steps):
            decision = self.step()
            if decision.action.severity > Action.SKIP.severity:
                return decision
        return decision


class Noise(Toy):
    """Its rewards have nothing to do with what was done."""

    def earned(self, arms):
        return self.draw.choice([0.0, 0.2, 1.0], size=arms.shape)


def test_a_policy_that_learns_is_left_alone_to_the_end():
    toy = Toy(rate=1.0, kl_ceiling=2.0)  # its one token moves further than those of a text
    decisions = [toy.step() for _ in range(150)]
    assert toy.policy()[:, 0].min() > 0.9
    assert {decision.action.value for decision in decisions} <= {"ok", "warn", "skip"}
    assert {name for decision in decisions for name in tripped(decision)} <= {"no_signal", "solved"}
    assert toy.guards.learning_rate_scale == 1.0


def test_an_entropy_collapse_is_rolled_back_to_weights_with_entropy_and_at_half_the_rate():
    toy = Noise(rate=6.0, seed=1, actions={"validity": (), "update_collapse": (), "kl": ()})
    decision = toy.run(400)
    assert tripped(decision)["entropy_floor"] == "roll_back"
    assert not decision.update
    assert np.array_equal(toy.weights, toy.snapshots[toy.restored])
    assert toy.restored < toy.step_number - GuardConfig().patience
    assert decision.learning_rate_scale == 0.5


def test_an_update_that_breaks_the_format_is_undone_to_the_last_bit():
    toy = Toy(rate=1.0, seed=1, kl_ceiling=2.0)
    for _ in range(12):
        toy.step()
    good = toy.weights.copy()
    toy.step(harm=-200.0)
    broken_weights = toy.weights.copy()
    decision = toy.step()

    assert "update_collapse" in tripped(decision)
    assert decision.action is Action.ROLL_BACK
    assert toy.restored == 12
    assert np.array_equal(toy.weights, good)
    assert not np.array_equal(toy.weights, broken_weights)


def test_a_nan_leaves_the_weights_as_they_are():
    toy = Toy(rate=1.0)
    toy.step()
    toy.rewards[1] = math.inf
    before = toy.weights.copy()
    decision = toy.step()
    assert tripped(decision) == {"non_finite": "skip"}
    assert "grad_norm" in decision.reasons[0]
    assert np.array_equal(toy.weights, before)


def test_a_batch_without_a_valid_call_updates_nothing():
    toy = Toy(rate=1.0)
    toy.weights[:, :4] = -50.0
    before = toy.weights.copy()
    decision = toy.step()
    assert tripped(decision) == {"no_signal": "skip", "all_invalid": "skip"}
    assert np.array_equal(toy.weights, before)


def test_a_drift_from_the_reference_lowers_the_learning_rate_and_still_updates():
    toy = Toy(rate=2.0, kl_ceiling=0.2)
    decision = toy.run(100)
    assert tripped(decision) == {"kl": "lower_lr"}
    assert decision.update
    assert decision.learning_rate_scale == 0.5
    assert not np.array_equal(toy.weights, toy.snapshots[toy.step_number - 1])


def test_an_explosion_of_entropy_lowers_the_learning_rate():
    toy = Noise(rate=1.0, baseline_steps=3, actions={"kl": (), "kl_spike": (), "validity": ()})
    toy.weights = np.tile([5.0, 0.0, 0.0, 0.0, -1.0, -1.0], (4, 1))
    toy.run(3)
    toy.weights *= 0.1
    decision = toy.run(20)
    assert tripped(decision) == {"entropy_ceiling": "lower_lr"}


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


def field_run():
    """Validity on groups of 2: 38 updates, all but the first destroyed the format at once."""
    yield 0.5
    for _ in range(37):
        yield 0.5
        yield 0.0
    yield 0.5


def test_97_percent_of_updates_being_followed_by_a_collapse_is_measured_as_that():
    off = dict.fromkeys(GUARD_NAMES, ())
    guards = Guards(GuardConfig(actions={**off, "all_invalid": ("skip",)}))
    for step, validity in enumerate(field_run(), 1):
        guards.observe(step, {"validity": validity, "turns": 6.0})
    assert guards.metrics()["updates"] == 39  # the last of them with nothing after it
    assert guards.metrics()["skipped_updates"] == 37
    assert guards.metrics()["collapse_share"] == pytest.approx(0.974, abs=0.0005)


def test_groups_of_two_that_destroy_the_format_end_after_six_updates_with_the_cure():
    """Six samples a step: no single fall is beyond chance, that they go on falling is."""
    guards = Guards(setup=Setup(group_size=2, divides_by_std=True, learning_rate=2e-6))
    for step, validity in enumerate(field_run(), 1):
        decision = guards.observe(step, {"validity": validity, "turns": 6.0, "grad_norm": 1.0})
        if decision.action.severity > Action.SKIP.severity:
            break
    assert tripped(decision)["collapse_share"] == "stop"
    assert guards.metrics()["updates"] == 6
    assert "groups of 2 it makes every advantage the same size" in decision.advice[0]
    assert "were at once followed by a collapse" in decision.diagnosis


def test_a_first_reward_within_ten_steps_and_no_flat_line_by_thirty_is_all_that_is_asked():
    flat = {"reward": 0.0, "reward_max": 0.0, "accuracy": 0.0}
    guards = Guards()
    early = actions(watch(guards, 9, **flat)) + actions(watch(guards, 21, first=10))
    assert set(early) == {"ok"}

    decisions = watch(Guards(), 30, **flat)
    loud = {d.step: tripped(d)["flat_reward"] for d in decisions if d.findings}
    assert loud == {10: "warn", 20: "warn", 30: "stop"}


def test_a_mean_below_zero_is_no_flat_line_while_some_rollouts_are_right():
    assert set(actions(watch(Guards(), 40, reward=-0.05, reward_max=0.9))) == {"ok"}
    assert set(actions(watch(Guards(), 40, reward=-0.05, reward_max=-0.05))) == {"ok"}  # accuracy


# One guard at a time


def test_healthy_steps_are_all_ok():
    assert set(actions(watch(Guards(), 200))) == {"ok"}


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


def test_without_a_sound_snapshot_there_is_none_to_choose():
    guards = Guards()
    watch(guards, 20, loss=math.nan)
    assert guards.choose_snapshot([]) is None
    assert guards.choose_snapshot([3, 7]) is None
    assert guards.choose_snapshot([0, 3]) == 0


# Resuming

numbers = st.sampled_from([0.0, 0.004, 0.05, 0.3, 0.6, 0.95, 12.0, math.nan, math.inf])
steps_of_metrics = st.lists(
    st.dictionaries(st.sampled_from([*sorted(HEALTHY), "nonfinite_weights"]), numbers, max_size=8),
    min_size=1,
    max_size=40,
)


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


@given(steps_of_metrics)
def test_any_numbers_are_decided_upon_and_no_update_follows_a_broken_one(metrics):
    guards = Guards()
    for step, numbers in enumerate(metrics, 1):
        decision = guards.observe(step, numbers)
        if broken(numbers) or decision.action in (Action.SKIP, Action.ROLL_BACK, Action.STOP):
            assert not decision.update
        assert bool(decision.diagnosis) == (decision.action is Action.STOP)
        assert 1 / 16 <= decision.learning_rate_scale <= 1


# Names, texts, config


def test_every_guard_is_in_the_table_once_and_has_advice_or_needs_none():
    assert tuple(guard.name for guard in GUARDS) == GUARD_NAMES
    silent = [name for name in GUARD_NAMES if not advice(name, Setup())]
    assert silent == ["no_signal"]


def test_what_guards_need_and_write_is_in_the_vocabulary():
    assert not unknown({key: 0.0 for guard in GUARDS for key in guard.needs})
    guards = Guards()
    watch(guards, 3)
    assert not unknown(guards.metrics())
    assert not unknown(HEALTHY)


def test_a_cure_that_was_taken_is_not_told_again():
    taken = Setup(group_size=16, divides_by_std=False, kl_weight=0.05, updates_per_batch=1)
    told = " ".join(advice("collapse_share", taken))
    assert "Compare 8" not in told
    assert "standard deviation" not in told
    assert "it is 0.05" in told


def test_severities_are_in_the_order_in_which_actions_are_listed():
    assert [action.severity for action in Action] == list(range(6))
    assert [action.value for action in Action] == [
        "ok",
        "warn",
        "skip",
        "lower_lr",
        "roll_back",
        "stop",
    ]


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


# The vocabulary against those who write and draw it


def test_the_trl_trainer_writes_no_metric_that_is_not_in_the_vocabulary():
    pytest.importorskip("trl", reason="needs the extra `train`")
    from adapters.training.figures import batch_metrics
    from adapters.trl.figures import _FROM_TRL

    written = {**batch_metrics([], [], []), **dict.fromkeys(_FROM_TRL.values())}
    assert not unknown(written)


def test_the_page_on_training_explains_only_metrics_of_the_vocabulary():
    page = Path(__file__).parents[2] / "docs" / "training.md"
    section = page.read_text().split("## Metrics")[1].split("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert told
    assert not unknown(dict.fromkeys(told))


def test_only_what_a_clock_measures_may_differ_between_equal_runs():
    assert {key for key, metric in METRICS.items() if not metric.repeats} == {
        "rollout_seconds",
        "update_seconds",
        "peak_memory",
    }
