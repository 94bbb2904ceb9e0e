"""Run the tests of the adapters to other frameworks, each in its own virtual environment.

The frameworks have conflicting dependencies. An adapter NAME has the extra NAME in `pyproject.toml`
(with hyphens for underscores), pins in `constraints/NAME.txt`, and tests in `tests/adapters/NAME`.
Its environment `.venvs/NAME` is created again when the pins or `pyproject.toml` change.

    python tools/adapter_tests.py --jobs 2      # all adapters, two at a time
    python tools/adapter_tests.py mcp -- -k stdio

An adapter is skipped if the package index does not have its framework. The exit status is 1 if a
test failed.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"


def adapters(root: Path = ROOT) -> list[str]:
    """Return the names of the adapters with pins."""
    return sorted(path.stem for path in (root / "constraints").glob("*.txt"))


def check(name: str, options: list[str], end: float) -> tuple[str, str]:
    """Create the environment of one adapter and run its tests.

    Args:
        name: Name of the adapter.
        options: Arguments of pytest.
        end: Deadline, on the clock of `time.monotonic`.

    Returns:
        The result and its reason.
    """

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        left = max(end - time.monotonic(), 0.01)
        return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=left)

    print(f"== {name}", flush=True)
    folder, pins = ROOT / ".venvs" / name, ROOT / "constraints" / f"{name}.txt"
    python, ready = str(folder / "bin" / "python"), folder / ".ready"
    made_from = [sys.version.encode(), (ROOT / "pyproject.toml").read_bytes(), pins.read_bytes()]
    stamp = hashlib.sha256(b"\0".join(made_from)).hexdigest()
    try:
        if not ready.is_file() or ready.read_text(encoding="utf-8") != stamp:
            done = run(sys.executable, "-m", "venv", "--clear", str(folder))
            if done.returncode:
                return FAILED, f"no virtual environment: {done.stderr.strip()[-500:]}"
            pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
            extra = name.replace("_", "-")
            wanted = ("-e", f".[{extra}]", "pytest", "hypothesis")
            done = run(*pip, "install", "-c", str(pins), *wanted)
            if done.returncode:
                lines = pins.read_text(encoding="utf-8").split()
                pin = next(line for line in lines if line.startswith(f"{name}=="))
                with tempfile.TemporaryDirectory() as empty:
                    offered = run(*pip, "download", "--no-deps", "--dest", empty, pin)
                if offered.returncode:
                    return SKIPPED, f"the package index does not offer {pin}"
                return FAILED, f"it cannot be installed: {done.stderr.strip()[-500:]}"
            ready.write_text(stamp, encoding="utf-8")
        done = run(python, "-m", "pytest", f"tests/adapters/{name}", *options)
    except subprocess.TimeoutExpired as late:
        return FAILED, f"the time for all adapters was spent: {str(late.stdout or '')[-500:]}"
    print(f"== {name} printed:\n{done.stdout}{done.stderr}", flush=True)
    return (FAILED, f"pytest ended with {done.returncode}") if done.returncode else (PASSED, "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Test the named adapters, or all, and print the results."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(adapters())} (default: all)"
    )
    options.add_argument(
        "--minutes", type=float, default=25.0, help="Time limit for all adapters together."
    )
    options.add_argument("--jobs", type=int, default=1, help="Number of adapters tested at a time.")
    words = list(sys.argv[1:] if arguments is None else arguments)
    cut = words.index("--") if "--" in words else len(words)
    given = options.parse_args(words[:cut])
    if unknown := sorted(set(given.names) - set(adapters())):
        options.error(f"there is no adapter {unknown[0]!r}; there are {', '.join(adapters())}.")
    names, end = given.names or adapters(), time.monotonic() + 60 * given.minutes
    with ThreadPoolExecutor(given.jobs) as pool:
        done = list(pool.map(lambda name: check(name, words[cut + 1 :], end), names))
    print("\nResults:")
    for name, (state, why) in zip(names, done, strict=True):
        print(f"{name}: {state}{f', {why}' if why else ''}")
    return int(any(state == FAILED for state, _ in done))


if __name__ == "__main__":
    sys.exit(main())
