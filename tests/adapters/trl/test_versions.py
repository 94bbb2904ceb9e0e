"""Later versions of TRL, and none: the installed one under another number, or one that is broken.

Another version is metadata that a process finds first on its path.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from toolgym.runs.run import Run

pytestmark = [pytest.mark.torch, pytest.mark.integration]

ROOT = Path(__file__).resolve().parents[3]


def run_with(first: Path, *words: object, code: int = 0) -> str:
    """Run a module that finds a folder first on its path; what it prints."""
    paths = os.pathsep.join([str(first), str(ROOT)])
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-m", *map(str, words)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=first)
    assert done.returncode == code, done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize("version", ["1.17.0", "2.0.0"])
def test_a_later_version_of_trl_trains_without_a_release_of_this_package(
    version: str, tiny_model: Any, read_tokenizer: Any, tmp_path: Path
) -> None:
    facts = tmp_path / "site" / f"trl-{version}.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trl\nVersion: {version}\n")
    tiny_model.resize_token_embeddings(len(read_tokenizer))
    tiny_model.save_pretrained(tmp_path / "model")
    read_tokenizer.save_pretrained(tmp_path / "model")

    settings = json.dumps({"settings": {"max_steps": 2}})
    worker = "tests.adapters.trl.trl_worker", tmp_path, tmp_path, "lively", settings
    run_with(tmp_path / "site", *worker)

    told = json.loads((tmp_path / "told-0.json").read_text())
    assert told["trl"] == version
    assert [line["updates"] for line in told["metrics"]] == [1, 2]
    assert all(line["accuracy"] == 0.25 for line in told["metrics"])
    assert all(line["grad_norm"] > 0 for line in told["metrics"])


def test_the_reference_trainer_needs_no_trl(tmp_path: Path) -> None:
    """A finder hides TRL, as if it were not installed."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WITHOUT_TRL)

    small = "--demonstrations 80 --sft-steps 2 --steps 1 --group-size 2 --prompts 2 --eval-tasks 2"
    small += " --eval-tries 0 --step-limit 2 --max-completion-length 32 --no-preflight"
    command = ["toolgym", "train", "sqlgym/Explore-v0", *small.split()]
    run_with(tmp_path / "site", *command, "--trainer", "reference", "--out", tmp_path / "run")

    run = Run.open(tmp_path / "run")
    assert run.is_complete
    assert [line["step"] for line in run.metrics("grpo")] == [1]
    refused = run_with(tmp_path / "site", *command, "--out", tmp_path / "other", code=2)
    assert "trl is not installed; run: pip install" in refused
    assert not (tmp_path / "other").exists()


WITHOUT_TRL = """
import importlib.machinery
find = importlib.machinery.PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] == "trl" else find(name, path, target)
importlib.machinery.PathFinder.find_spec = staticmethod(find_spec)
"""
