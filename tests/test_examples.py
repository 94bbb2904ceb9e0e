"""Every example runs in a process of its own, at a small size."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

# Arguments that keep a run small, and a text that it must print.
RUNS = {
    "gym_loop.py": (("1",), "correct: True, score 0.981"),
    "unit_test_an_environment.py": ((), "passed: the environment passes check tool env"),
    "own_database.py": (("{folder}/staff.db",), "the expert solves 100% of 30 tasks of dev"),
    "own_environment.py": (("50",), "correct: True, score 0.9"),
    "trl_grpo.py": (("--steps", "1", "--sft-steps", "5"), "step 1: reward "),
}
NEEDS_TORCH = [name for name in RUNS if name.startswith("trl_")]


# A column of a table; a row with the failure, and one that undoes it, with the larger value first.
LAB = {
    "null_wall.py": ("largest gradient", "lenient tools", "strict tools"),
    "groups_of_two.py": (
        "spread of advantage sizes",
        "two, scaled by the batch",
        "groups of two",
    ),
    "dead_groups.py": ("dead groups, first 5 steps", "right or wrong", "partial credit"),
    "entropy.py": ("entropy after", "0.0001", "learning rate 0.001"),
    "kl_drift.py": ("drift", "no penalty", "KL coefficient 1"),
}
SIZES = {"null_wall.py": ("--updates", "2", "--imitation", "60")}


def marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in NEEDS_TORCH:
        return [pytest.mark.integration]
    return [pytest.mark.torch, pytest.mark.integration]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python outside the checkout's root, as someone does who has installed the package."""
    environ = os.environ | {"OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in sorted(RUNS)])
def test_the_example_runs(name, tmp_path):
    arguments, told = RUNS[name]
    if name in NEEDS_TORCH:
        pytest.importorskip("trl", reason="needs the extra train")

    done = run(str(EXAMPLES / name), *(each.format(folder=tmp_path) for each in arguments))

    assert done.returncode == 0, done.stderr
    assert told in done.stdout


@pytest.mark.torch
@pytest.mark.integration
@pytest.mark.parametrize("name", LAB)
def test_an_experiment_of_the_lab_shows_the_failure_and_undoes_it(name):
    pytest.importorskip("trl", reason="needs the extra train")
    column, larger, smaller = LAB[name]

    done = run(str(EXAMPLES / "lab" / name), "--seeds", "3", *SIZES.get(name, ("--updates", "5")))

    assert done.returncode == 0, done.stderr
    titles, _, *rows = [line.split("|") for line in done.stdout.rpartition("\n\n")[2].splitlines()]
    place = [title.strip() for title in titles].index(column)
    values = {row[1].strip(): float(row[place].split()[0]) for row in rows}
    assert values[larger] > values[smaller] + 1e-3


@pytest.mark.torch
@pytest.mark.integration
def test_the_comparison_of_trainers_trains_every_arm_and_prints_saved_rows_again(tmp_path):
    pytest.importorskip("trl", reason="needs the extra train")
    script, rows = str(EXAMPLES / "lab" / "trainers.py"), str(tmp_path / "rows.jsonl")
    sizes = ("--seeds", "0", "--steps", "1", "--imitation", "40", "--eval-tasks", "2")

    done = run(script, *sizes, "--out", rows)
    again = run(script, "--table", rows)

    assert done.returncode == 0, done.stderr
    titles, _, *arms = [line.split("|") for line in done.stdout.partition("\n\n")[0].splitlines()]
    place = [title.strip() for title in titles].index("rollouts")
    played = {arm[1].strip(): arm[place].strip() for arm in arms}
    assert played.pop("before training") == ""
    assert int(played.pop("Rollouts and guards, 3 draws")) > 32  # an update without a dead group
    assert set(played) == {
        "TRL, strict tools",
        "TRL, lenient tools",
        "Rollouts and guards",
        "reference trainer",
    }
    assert set(played.values()) == {"32"}
    assert again.stdout == done.stdout


@pytest.mark.torch
@pytest.mark.integration
def test_an_experiment_with_fewer_than_three_seeds_is_refused_before_it_begins():
    pytest.importorskip("trl", reason="needs the extra train")

    done = run(str(EXAMPLES / "lab" / "entropy.py"), "--seeds", "2")

    assert done.returncode == 1
    assert "ConfigurationError: 2 seeds cannot be compared" in done.stderr
    assert "give --seeds 3 or more" in done.stderr


def test_no_example_is_without_a_run():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(RUNS)


@pytest.mark.integration
def test_pytest_collects_the_example_of_a_unit_test():
    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/unit_test_an_environment.py"
    )

    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
