"""What a workflow is worth, computed, against the executor that draws it."""

import random
from dataclasses import fields, replace

import numpy as np
import pytest

from aflowgym import execute, expected, grade, load_tasks, parse, score
from aflowgym.backends import PRESETS, Preset, SimulatedBackend, Skills
from aflowgym.dsl.checking import calls
from aflowgym.expectation import outcomes
from aflowgym.operators.catalogue import OPERATORS, Operator
from toolgym import RewardConfig
from toolgym.errors import ConfigurationError

KINDS = ("math", "code", "qa")
TASKS = {
    kind: [task for task in load_tasks("bundled", "train") if task.kind == kind] for kind in KINDS
}
REWARDS = RewardConfig()
PLAIN = ["Custom", "AnswerGenerate", "CustomCodeGenerate", "Programmer", "Format", "Revise"]
CHECKS = ["Review", "Test"]


def some_chain(rng, depth):
    """A text that is often a workflow; `parse` decides."""
    return " -> ".join(some_step(rng, depth) for _ in range(rng.choice([1, 1, 2, 2, 3, 3])))


def some_step(rng, depth):
    shape = rng.random() if depth else 0.0
    if shape < 0.45:
        return rng.choice(PLAIN + CHECKS)
    if shape < 0.6:
        begins = [
            rng.choice([f"{rng.choice(PLAIN[:4])} -> ", ""]) for _ in range(rng.randint(1, 4))
        ]
        inside = ", ".join(f"({begin}{some_chain(rng, depth - 1)})" for begin in begins)
        return f"[{inside}] -> {rng.choice(['ScEnsemble', 'MdEnsemble'])}"
    if shape < 0.8:
        return f"({some_chain(rng, depth - 1)}) * {rng.randint(2, 3)}"
    before = f"{some_chain(rng, depth - 1)} -> " if rng.random() < 0.3 else ""
    fail, passed = (f"({some_chain(rng, depth - 1)})" for _ in range(2))
    return f"({before}{rng.choice(CHECKS)}) ? {fail} : {rng.choice([passed, 'done'])}"


def random_workflows(count, seed=0):
    """Well typed workflows of all shapes, each with a kind and a preset."""
    rng, found = random.Random(seed), {}
    while len(found) < count:
        kind, preset = rng.choice(KINDS), rng.choice(list(PRESETS))
        text = f"{rng.choice(PLAIN[:4])} -> {some_chain(rng, 3)}"
        tree = parse(rng.choice([text, some_chain(rng, 3)]), kind=kind).workflow
        if tree is not None and len(str(tree)) < 200:
            found.setdefault(str(tree), (tree, kind, preset))
    return list(found.values())


def sampled(tree, kind, backend, runs, rewards=REWARDS):
    """Accuracy, calls and reward of so many runs, [run, 3]."""
    rows = []
    for seed in range(runs):
        task = TASKS[kind][seed % len(TASKS[kind])]
        result = execute(tree, task, backend, seed=seed)
        verdict = grade(task, result.solution, backend.sandbox)
        reached = score.progress(verdict if result.ok else None)
        made, right = result.usage.calls, bool(verdict.correct)
        rows.append((right, made, score.episode_score(rewards, made, reached, right)))
    return np.array(rows, float)


def deviation(tree, kind, preset, runs):
    """How many standard errors the means of so many runs are from what is expected.

    A spread is taken to be no less than that of one event in all runs: what is so rare that a
    sample has none of it would otherwise have no spread at all.
    """
    exact = np.array(expected(tree, kind, preset))
    drawn = sampled(tree, kind, SimulatedBackend(preset), runs)
    share = exact[0]
    spread = drawn.std(axis=0)
    spread[0] = (share * (1 - share)) ** 0.5
    off = np.abs(drawn.mean(axis=0) - exact)
    return off * runs**0.5 / np.maximum(spread, runs**-0.5)


@pytest.fixture(scope="module")
def workflows():
    return random_workflows(200)


@pytest.mark.nightly
def test_what_is_expected_is_what_runs_come_to(workflows):
    """600 means of 300 runs each; four standard errors are passed once in 26 such tests by chance,
    and the seeds are fixed."""
    far = {
        (str(tree), kind, preset): off
        for tree, kind, preset in workflows
        if (off := deviation(tree, kind, preset, 300)).max() > 4
    }

    assert not far


def random_preset(rng):
    """Skills of all sizes, so that no part of them is too rare to be seen."""

    def skills(**fixed):
        names = [f.name for f in fields(Skills)]
        drawn = {name: rng.random() for name in names}
        return Skills(**{**drawn, "spread": 3 * rng.random(), "weight": 3 * rng.random(), **fixed})

    return Preset("random", math=skills(), code=skills(loose=0.0), qa=skills())


@pytest.mark.nightly
def test_what_is_expected_is_what_runs_come_to_whatever_the_skills():
    rng = random.Random(0)
    far = {
        str(tree): off
        for tree, kind, _ in random_workflows(100, seed=2)
        if (off := deviation(tree, kind, random_preset(rng), 400)).max() > 4
    }

    assert not far


@pytest.mark.nightly
def test_the_joint_distribution_is_one(workflows):
    for tree, kind, preset in workflows[:60]:
        joint = outcomes(tree, kind, preset)
        counts = joint.sum(axis=(0, 1))
        bounds = calls(tree, OPERATORS)

        assert joint.min() > -1e-12
        assert joint.sum() == pytest.approx(1, abs=1e-12)
        # A failed branch leaves an ensemble fewer candidates, so it may call less often.
        assert counts[bounds.most + 1 :].sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.nightly
def test_costs_of_the_reward_law_come_from_the_joint_distribution():
    """Not from its means: the cost saturates."""
    dear = RewardConfig(step=0.015, cost_cap=0.1, failed_call=0.016, partial=0.5, margin=0.4)
    tree = parse("Custom -> (Review -> Revise) * 3").workflow
    exact = expected(tree, "math", rewards=dear)
    drawn = sampled(tree, "math", SimulatedBackend(), 2000, dear)

    assert exact[:2] == expected(tree, "math")[:2]
    off = abs(drawn[:, 2].mean() - exact.reward)
    assert off < 4 * drawn[:, 2].std() / 2000**0.5
    at_the_mean = np.interp(
        exact.calls, range(20), [score.episode_score(dear, n, 0.5, False) for n in range(20)]
    )
    right = 1 - 0.5 * 0.5
    assert abs(at_the_mean + right * exact.accuracy - exact.reward) > 1e-3


PAPER = {
    # What the table of the paper gives, per cent, as the mean of two data sets of the kind.
    "math": {
        "Custom": (92.7 + 48.6) / 2,
        "AnswerGenerate": (92.4 + 48.8) / 2,
        "[AnswerGenerate * 5] -> ScEnsemble": (92.7 + 50.4) / 2,
        "[AnswerGenerate * 5] -> MdEnsemble": (90.0 + 50.0) / 2,
        "AnswerGenerate -> Review ? Revise : done": (89.6 + 46.1) / 2,
        "Programmer": (93.5 + 56.2) / 2,
    },
    "code": {
        "Custom": (87.0 + 71.8) / 2,
        "AnswerGenerate": (88.6 + 71.8) / 2,
        "[AnswerGenerate * 5] -> ScEnsemble": (91.6 + 73.6) / 2,
        "[AnswerGenerate * 5] -> MdEnsemble": (91.6 + 73.6) / 2,
        "AnswerGenerate -> Review ? Revise : done": (87.8 + 69.8) / 2,
        "Programmer -> Test": (94.7 + 83.4) / 2,
    },
    "qa": {
        "Custom": (68.1 + 68.3) / 2,
        "AnswerGenerate": (67.9 + 78.5) / 2,
        "[AnswerGenerate * 5] -> ScEnsemble": (68.9 + 78.8) / 2,
        "[AnswerGenerate * 5] -> MdEnsemble": (68.3 + 78.0) / 2,
        "AnswerGenerate -> Review ? Revise : done": (60.8 + 70.2) / 2,
        "AnswerGenerate -> Format": (73.5 + 80.6) / 2,
    },
}


def test_the_preset_paper_has_the_numbers_of_the_table():
    for kind, text in [(k, text) for k, rows in PAPER.items() for text in rows]:
        assert 100 * expected(text, kind, "paper").accuracy == pytest.approx(
            PAPER[kind][text], abs=0.02
        )


def test_a_text_with_errors_is_worth_nothing_and_says_why():
    with pytest.raises(ConfigurationError, match="E-NEEDS-LIST"):
        expected("Custom -> ScEnsemble", "math")


def test_an_operator_of_ones_own_is_worth_what_it_acts_like():
    mine = OPERATORS.copy()
    mine.register(
        Operator(
            name="SecondLook",
            summary="Judge it once more.",
            prompt="{problem} {solution}",
            needs=("solution",),
            writes=("verdict", "feedback"),
        )
    )
    preset = replace(PRESETS["teaching"], acts_like={"SecondLook": "Review"})
    tree = parse("Custom -> (SecondLook -> Revise) * 2", operators=mine).workflow

    assert expected(tree, "math", preset, operators=mine) == expected(
        "Custom -> (Review -> Revise) * 2", "math"
    )
    with pytest.raises(ConfigurationError, match="acts_like"):
        expected(tree, "math", operators=mine)
