"""With a version of TRL that nobody has read the trainers step aside, and the environment goes on.

The newer version is the one that is installed, under another number: what `importlib.metadata`
finds first on the path.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

import adapters.trl
from adapters.trl import RolloutEnvironment, ToolGRPOTrainer, environment_factory
from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[3]
NEWER = "1.999.0"


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a newer version of TRL, which this process finds first."""
    folder = tmp_path / "site"
    facts = folder / f"trl-{NEWER}.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trl\nVersion: {NEWER}\n")
    monkeypatch.syspath_prepend(folder)
    for name in ("stable_trainer", "tool_trainer"):  # what is refused is not imported first
        monkeypatch.setitem(sys.modules, f"adapters.trl.{name}", None)
    for name in ("StableGRPOTrainer", "ToolGRPOTrainer", "build_trainer"):
        monkeypatch.delitem(vars(adapters.trl), name, raising=False)
    monkeypatch.delitem(sys.modules, "adapters.commands.train_with_trl", raising=False)
    return folder


@pytest.mark.usefixtures("newer")
def test_the_trainers_refuse_a_version_that_was_not_read_and_say_what_works() -> None:
    refused: list[Callable[[], Any]] = [
        lambda: adapters.trl.StableGRPOTrainer,
        lambda: adapters.trl.ToolGRPOTrainer,
        lambda: adapters.trl.build_trainer,
        # past the package's own door
        lambda: ToolGRPOTrainer("no model", args=None, environment_factory=RolloutEnvironment),
    ]
    for wanted in refused:
        with pytest.raises(ConfigurationError, match=NEWER) as refusal:
            wanted()
        said = str(refusal.value)
        assert f"{NEWER} is installed" in said
        assert "environment_factory" in said
        assert "--trainer reference" in said
    assert "Tables:" in environment_factory("sqlgym/Explore-v0", dataset="tiny")().reset()


@pytest.mark.usefixtures("newer")
def test_the_command_refuses_it_before_it_makes_a_run_folder(tmp_path: Path) -> None:
    made = tmp_path / "run"

    done = run_here("train", "sqlgym/Explore-v0", "--trainer", "trl", "--out", made)

    assert done.returncode == 2, done.stderr
    assert f"{NEWER} is installed" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not made.exists()


@pytest.mark.nightly
def test_trls_own_trainer_trains_on_the_environment_with_it(newer: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(newer), str(ROOT)])}
    script = str(ROOT / "examples" / "trl_grpo.py")
    command = [sys.executable, script, "--steps", "1", "--warmup", "1"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=newer)

    assert done.returncode == 0, done.stderr
    assert "reward" in done.stdout
