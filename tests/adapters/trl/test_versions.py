"""With a version of TRL that nobody has read the trainers step aside, and the environment goes on.

The newer version is the one that is installed, under another number: what `importlib.metadata`
finds first on the path of a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[3]
NEWER = "1.999.0"
REFUSED = f"""
import importlib.metadata, sys
assert importlib.metadata.version("trl") == {NEWER!r}
import adapters.trl
from toolgym import ConfigurationError
for name in ("StableGRPOTrainer", "ToolGRPOTrainer", "build_trainer"):
    try:
        getattr(adapters.trl, name)
    except ConfigurationError as error:
        print(error)
assert "trl" not in sys.modules, "what is refused is not imported first"
from adapters.trl.tool_trainer import ToolGRPOTrainer  # past the package's own door
try:
    ToolGRPOTrainer("no model", args=None, environment_factory=None)
except ConfigurationError as error:
    print(error)
"""


def newer(folder: Path) -> dict[str, str]:
    """The environment of a process that finds a newer version of TRL."""
    facts = folder / f"trl-{NEWER}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trl\nVersion: {NEWER}\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=newer(folder), capture_output=True, text=True, cwd=folder
    )


def test_the_trainers_refuse_a_version_that_was_not_read_and_say_what_works(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", REFUSED)

    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 4
    for line in said:
        assert f"{NEWER} is installed" in line
        assert "environment_factory" in line
        assert "--trainer reference" in line


def test_the_command_refuses_it_before_it_makes_a_run_folder(tmp_path: Path) -> None:
    made = tmp_path / "run"
    done = run(
        tmp_path,
        "-m",
        "toolgym",
        "train",
        "sqlgym/Explore-v0",
        "--trainer",
        "trl",
        "--out",
        str(made),
    )

    assert done.returncode == 2, done.stderr
    assert f"{NEWER} is installed" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not made.exists()


@pytest.mark.slow
def test_trls_own_trainer_trains_on_the_environment_with_it(tmp_path: Path) -> None:
    done = run(tmp_path, str(ROOT / "examples" / "trl_grpo.py"), "--steps", "1", "--warmup", "1")

    assert done.returncode == 0, done.stderr
    assert "reward" in done.stdout
