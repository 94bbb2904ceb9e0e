"""Comparison of two answers by `math-verify`, in a process of its own.

`math-verify` (the extra `math`) reads much more LaTeX than this package and is slow at it: it
imports sympy, takes a millisecond a case, and some texts keep it busy for ever. So it is asked
only about what cannot be read here and looks like a formula, it is imported in a worker process
only, and the parent waits no longer than `seconds`: then the worker is killed, and started anew
with the next case. What it cannot tell in time is told as None, never as a verdict.

What comes back may depend on the version that is installed and, at the time limit, on the machine;
an environment that must give the same reward everywhere asks nobody (`outside=None`).
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import re
import selectors
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

from toolgym.errors import ConfigurationError
from toolgym.forks import leave_to_parent, renew_in_child

START_SECONDS: Final = 30.0
_COMMANDS: Final = re.compile(r"\\[A-Za-z]+")
_PROSE: Final = re.compile(r"[A-Za-z]{4,}")
_LONGEST: Final = 300
_WORKER: Final = Path(__file__).with_name("math_worker.py")


def is_installed() -> bool:
    """Whether the extra `math` is there; it is looked for without importing it."""
    return importlib.util.find_spec("math_verify") is not None


def is_formula(text: str) -> bool:
    """Whether a text may be a formula; a sentence, an error message or a page of text is none."""
    return len(text) <= _LONGEST and _PROSE.search(_COMMANDS.sub(" ", text)) is None


class Outside:
    """A worker that compares formulas, started when it is first asked.

    Args:
        seconds: How long one question may take; the start of the worker has its own limit.

    Raises:
        ConfigurationError: `math-verify` is not installed.
    """

    def __init__(self, seconds: float = 2.0) -> None:
        if not is_installed():
            raise ConfigurationError(
                "comparing formulas by math-verify needs the extra: pip install 'toolgym[math]'."
            )
        self.seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin without a worker; one of a parent goes on, and answers the parent only."""
        if self._process is not None:
            atexit.unregister(self._process.kill)
            leave_to_parent(self._process)
        self._process = None
        self._lock = threading.Lock()

    def same(self, gold: str, answer: str) -> bool | None:
        """Whether two formulas are the same; None if it cannot tell, or not in time."""
        if not is_formula(gold) or not is_formula(answer):
            return None
        with self._lock:
            if not self._is_ready():
                return None
            reply = self._ask(json.dumps([gold, answer]), self.seconds)
            if reply is None:
                self._stop()
            return {"yes": True, "no": False}.get(reply or "")

    def close(self) -> None:
        """Stop the worker; the next question starts a new one."""
        with self._lock:
            self._stop()

    def _is_ready(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return True
        self._process = subprocess.Popen(
            [sys.executable, str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(self._process.kill)
        if self._ask('["1", "1"]', START_SECONDS) == "yes":
            return True
        self._stop()
        return False

    def _ask(self, line: str, seconds: float) -> str | None:
        """The worker's line; None if it does not come in time, or the worker is gone."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        except OSError:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                return None
        return process.stdout.readline().strip() or None

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        atexit.unregister(process.kill)
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
