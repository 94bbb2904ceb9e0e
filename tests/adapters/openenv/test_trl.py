"""TRL's `GRPOTrainer` learns on a real server, through the real client, by the example.

OpenEnv and TRL can be installed together, and `make test-adapters` does not: PyTorch would make the
environment three times as large. To run this, add the extra to it:

    .venvs/openenv/bin/pip install -c constraints/openenv.txt -e '.[openenv,train]'
"""

import os
import subprocess
import sys

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`: make test-adapters NAME=openenv")
pytest.importorskip("trl", reason="needs the extra `train` besides: see this module")

from tests.adapters.openenv.openenv_play import ROOT


@pytest.mark.nightly
def test_a_step_of_grpo_is_made_on_a_server() -> None:
    command = ["examples/integrations/openenv_trl.py", "--steps", "1", "--sft-steps", "20"]
    environ = os.environ | {"OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}

    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environ, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1].startswith("step 1: reward ")
