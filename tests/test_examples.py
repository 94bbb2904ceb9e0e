"""Every example runs as printed, in a process of its own, at a small size it takes itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"

# Arguments that keep it small, and a line that it must print.
RUNS = {
    "gym_loop.py": (("1",), "correct: True, score 0.981"),
    "unit_test_an_environment.py": ((), "passed: the whole contract holds"),
    "own_database.py": (("{folder}/staff.db",), "the expert solves 100% of 30 tasks of dev"),
    "own_environment.py": (("50",), "correct: True, score 0.9"),
    "trl_grpo.py": (("--steps", "1", "--warmup", "5"), "step 1: reward "),
    "lab_post_episode.py": (("25",), "25 calls after the end: -1.25 without a bound, -0.18 here"),
    "lab_group_size.py": (("--updates", "2"), "K=16: valid at the end"),
    "lab_fallback.py": (("--updates", "2"), "paid nothing: prose"),
    "lab_advantage_collapse.py": (("--rollouts", "64"), "groups of 16: 64 rollouts"),
    "lab_entropy.py": (("--updates", "2"), "rate 0.003, bonus 0.01: "),
    "lab_kl.py": (("--updates", "2"), "in the reward: "),
    "lab_length.py": (("--updates", "2"), "paid by chance, per constant: "),
    "lab_noisy_verifier.py": (("--updates", "2"), "the rules agree on "),
    "lab_estimators.py": (("--updates", "2"), "cispo: "),
    "lab_estimators_sql.py": (
        ("--only", "gspo", "--warmup", "20", "--steps", "2"),
        "GSPO: reward ",
    ),
    "lab_null_wall.py": (("--warmup", "20", "--steps", "1"), "strict tools"),
    "lab_warm_up.py": (
        ("--questions", "8", "--epochs", "2", "--steps", "1"),
        "8 questions, epochs 2: valid turns",
    ),
}
NEEDS_TORCH = [name for name in RUNS if name.startswith(("trl_", "lab_"))]


def marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in NEEDS_TORCH:
        return [pytest.mark.integration]
    gates = name in ("trl_grpo.py", "lab_post_episode.py")
    return [pytest.mark.torch, pytest.mark.integration if gates else pytest.mark.nightly]


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


def test_no_example_is_without_a_run():
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(RUNS)


@pytest.mark.integration
def test_pytest_collects_the_example_of_a_unit_test():
    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/unit_test_an_environment.py"
    )

    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
