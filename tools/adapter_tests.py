"""Run the tests of the adapters to other frameworks, each in a virtual environment of its own.

The frameworks exclude each other, and none of them is needed for anything else here. An adapter
NAME has the extra NAME in `pyproject.toml` (with hyphens for underscores), its pins in
`constraints/NAME.txt`, and its tests in `tests/adapters/NAME`; its environment is `.venvs/NAME`,
which is kept and made anew when the pins or `pyproject.toml` change. Only Python's own `venv` and
`pip` are needed:

    python tools/adapter_tests.py --jobs 2      # all of them, two at a time
    python tools/adapter_tests.py mcp -- -k stdio

An adapter whose packages the index does not offer, or cannot be asked for, is skipped and says so.
One that is offered and cannot be installed has failed. Exit status 1 when any failed.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
TEST_PACKAGES = ("pytest", "hypothesis")
PASSED, FAILED, SKIPPED = "passed", "FAILED", "skipped"
NO_TESTS = 5
"""Pytest's exit status where every test was left out."""


def adapters(root: Path = ROOT) -> list[str]:
    """Names of the adapters that have an environment of their own."""
    return sorted(path.stem for path in (root / "constraints").glob("*.txt"))


def pins(name: str, root: Path = ROOT) -> dict[str, str]:
    """The pinned versions of an adapter, by package."""
    lines = (root / "constraints" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    written = (line.partition("==") for line in lines if line and not line.startswith("#"))
    return {package: version for package, _, version in written}


def extra(name: str) -> str:
    """The extra of an adapter: its name, with a hyphen for each underscore.

    Metadata has it so, and older versions of pip find no extra that is written in another way.
    """
    return name.replace("_", "-")


def asked_for(name: str, root: Path = ROOT) -> list[str]:
    """The packages that an adapter's extra names."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["optional-dependencies"][extra(name)]
    return [re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0] for requirement in wanted]


def stamp(name: str, root: Path = ROOT) -> str:
    """What an environment was made from: it is made anew where this has changed."""
    files = (root / "pyproject.toml", root / "constraints" / f"{name}.txt")
    read = b"\0".join([sys.version.encode(), *(file.read_bytes() for file in files)])
    return hashlib.sha256(read).hexdigest()


class OutOfTime(Exception):
    """The time for all adapters is spent."""


class Clock:
    """The time that is left for all adapters."""

    def __init__(self, minutes: float) -> None:
        self._end = time.monotonic() + 60 * minutes

    def run(
        self, command: Sequence[str], into: IO[str] | int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, as long as there is time.

        Args:
            command: Program and arguments.
            into: Where both its streams go, a file or `PIPE`; None: to those of this process.

        Raises:
            OutOfTime: There was not enough; what it had written to a file is there.
        """
        left = self._end - time.monotonic()
        try:
            return subprocess.run(
                command, cwd=ROOT, text=True, stdout=into, stderr=into, timeout=max(left, 0.01)
            )
        except subprocess.TimeoutExpired:
            raise OutOfTime("the time for all adapters was spent") from None


def prepare(name: str, clock: Clock) -> tuple[str, str]:
    """Make the environment of an adapter, if it is not there: `PASSED`, or what went wrong."""
    folder = ROOT / ".venvs" / name
    ready = folder / ".ready"
    if ready.is_file() and ready.read_text(encoding="utf-8") == stamp(name):
        return PASSED, ""
    made = clock.run([sys.executable, "-m", "venv", "--clear", str(folder)], into=PIPE)
    if made.returncode:
        return FAILED, f"no virtual environment: {last_line(made.stderr)}"
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wanted = ["-c", f"constraints/{name}.txt", "-e", f".[{extra(name)}]", *TEST_PACKAGES]
    installed = clock.run([*pip, "install", *wanted], into=PIPE)
    if installed.returncode == 0:
        ready.write_text(stamp(name), encoding="utf-8")
        return PASSED, ""
    for package in asked_for(name):
        pin = f"{package}=={pins(name)[package]}"
        if not is_offered(pin, pip, clock):
            return SKIPPED, f"the package index does not offer {pin}, or cannot be reached"
    return FAILED, f"it cannot be installed: {last_line(installed.stderr)}"


def is_offered(pin: str, pip: list[str], clock: Clock) -> bool:
    """Whether the index has this version."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [*pip, "--retries", "1", "download", "--no-deps", "--dest", folder, pin]
        return clock.run(asked, into=PIPE).returncode == 0


def last_line(text: str) -> str:
    """The last line of what a command said."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no reason")


def check(name: str, options: list[str], clock: Clock, alone: bool = True) -> tuple[str, str]:
    """Prepare one adapter and run its tests: how it went, and why.

    What the tests print is shown at once where they run alone, and otherwise in one piece when they
    have ended, since lines of two adapters would be mixed.
    """
    print(f"== {name}", flush=True)
    try:
        state, why = prepare(name, clock)
        if state != PASSED:
            return state, why
        python = str(ROOT / ".venvs" / name / "bin" / "python")
        command = [python, "-m", "pytest", f"tests/adapters/{name}", *options]
        status = clock.run(command).returncode if alone else run_apart(name, command, clock)
    except OutOfTime as problem:
        return FAILED, str(problem)
    if status == NO_TESTS:
        return FAILED, "no test ran"
    return (FAILED, f"pytest ended with {status}") if status else (PASSED, "")


def run_apart(name: str, command: Sequence[str], clock: Clock) -> int:
    """Run the tests of one adapter beside others: their exit status, and their output at the end.

    Raises:
        OutOfTime: There was not enough; what they had printed is shown.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as file:
        try:
            return clock.run(command, into=file).returncode
        finally:
            file.seek(0)
            print(f"== {name} printed:\n{file.read()}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the adapters that were named, or all, and print how each went."""
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("names", nargs="*", metavar="NAME", help="An adapter; all without it.")
    options.add_argument("--minutes", type=float, default=25.0, help="For all of them together.")
    options.add_argument("--jobs", type=int, default=1, help="How many at a time.")
    words = list(sys.argv[1:] if arguments is None else arguments)
    cut = words.index("--") if "--" in words else len(words)
    asked = options.parse_args(words[:cut])
    unknown = [name for name in asked.names if name not in adapters()]
    if unknown:
        known = ", ".join(adapters())
        print(f"there is no adapter {unknown[0]!r}; there are {known}.", file=sys.stderr)
        return 2
    if asked.jobs < 1:
        print(f"--jobs is {asked.jobs}; it must be 1 or more.", file=sys.stderr)
        return 2
    names = asked.names or adapters()
    clock, rest = Clock(asked.minutes), words[cut + 1 :]
    alone = min(asked.jobs, len(names)) == 1
    with ThreadPoolExecutor(asked.jobs) as pool:
        try:
            done = pool.map(lambda name: check(name, rest, clock, alone), names)
            results = dict(zip(names, done, strict=True))
        except BaseException:  # an interrupt stops the adapters that wait, too
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    print("\nThe adapters, each in an environment of its own:")
    for name, (state, why) in results.items():
        print(f"{name}: {state}{f', {why}' if why else ''}")
    return int(any(state == FAILED for state, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main())
