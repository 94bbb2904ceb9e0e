"""Run the fast tests that need no torch on every supported interpreter of this machine.

The classifiers in `pyproject.toml` list the supported versions. The interpreter that runs this
script is excluded. Others are searched on `PATH` and in pyenv's versions, and must start with the
expected version. Each gets a new environment in `.venvs/` with the base install and pytest.

The exit status is 1 if a test failed. A missing interpreter is listed and is not a failure.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLASSIFIER = "Programming Language :: Python :: 3."
TEST_PACKAGES = ("pytest", "hypothesis", "pytest-xdist")
TIER = "not integration and not nightly and not torch"


def supported(root: Path = ROOT) -> list[str]:
    """Return the supported versions, such as "3.12"."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [name for name in project["classifiers"] if name.startswith(CLASSIFIER)]
    return [name.rsplit(" ", 1)[1] for name in names]


def candidates(version: str) -> list[str]:
    """Return commands that may start a version: the one on `PATH`, then pyenv's, newest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    patches = sorted(
        (folder for folder in pyenv.glob(f"{version}.*") if folder.name.split(".")[2].isdigit()),
        key=lambda folder: int(folder.name.split(".")[2]),
        reverse=True,
    )
    return [f"python{version}", *(str(folder / "bin" / "python") for folder in patches)]


def find(version: str) -> str | None:
    """Return the first command that starts this version, or None."""
    for command in candidates(version):
        try:
            told = subprocess.run([command, "--version"], capture_output=True, text=True)
        except OSError:
            continue
        if told.returncode == 0 and told.stdout.startswith(f"Python {version}."):
            return command
    return None


def run_tests(version: str, command: str, pytest_options: list[str]) -> bool:
    """Create the environment of an interpreter and return whether its tests pass."""
    folder = ROOT / ".venvs" / version
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    steps = [
        [command, "-m", "venv", "--clear", str(folder)],
        [*pip, "install", "-c", "constraints.txt", "-e", ".", *TEST_PACKAGES],
        [python, "-m", "pytest", "-m", TIER, *pytest_options],
    ]
    print(f"== Python {version}: {command}", flush=True)
    return all(subprocess.run(step, cwd=ROOT).returncode == 0 for step in steps)


def main(pytest_options: list[str]) -> int:
    """Test every other supported interpreter and print the results."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines, failed = [], False
    for version in supported():
        if version == here:
            lines.append(f"Python {version}: the interpreter of .venv, not run again")
        elif (command := find(version)) is None:
            lines.append(f"Python {version}: not found on this machine, not run")
        else:
            passed = run_tests(version, command, pytest_options)
            failed = failed or not passed
            lines.append(f"Python {version}: {'passed' if passed else 'FAILED'} ({command})")
    print("\n".join(["", "The tests that need no torch, interpreter by interpreter:", *lines]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
