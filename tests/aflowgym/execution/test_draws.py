"""The draws of a run do not depend on the process that makes them."""

import os
import subprocess
import sys

import pytest

TEXTS = [
    "Custom -> Programmer -> Review ? Revise : done",
    "[Custom * 3, Programmer, AnswerGenerate -> Review -> Revise] -> ScEnsemble -> Format",
    "[[Custom, Programmer] -> MdEnsemble, Custom -> (Review -> Revise) * 3] -> ScEnsemble",
    "([Custom, Custom] -> ScEnsemble -> Review) * 3 -> [Revise, Format, Programmer] -> MdEnsemble",
    "CustomCodeGenerate -> Test ? [Revise, Programmer] -> ScEnsemble : Format",
    "([Programmer, Programmer] -> ScEnsemble -> Test ? (Revise -> Programmer) : done) * 2",
]
SCRIPT = f"""
from aflowgym import execute, load_tasks, parse
from aflowgym.backends import SimulatedBackend
backend = SimulatedBackend("teaching")
for task in load_tasks("bundled", "train")[::40]:
    for text in {TEXTS!r}:
        tree = parse(text, kind=task.kind).workflow
        if tree is not None:
            print(execute(tree, task, backend, seed=7).trace)
"""


@pytest.mark.integration
def test_two_processes_draw_the_same_whatever_their_hash_seed():
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            timeout=600,
        ).stdout
        for hash_seed in ("0", "1")
    ]

    assert printed[0] == printed[1]
    assert len(printed[0]) > 1000
