"""Sandboxes for potentially hostile programs that a language model wrote.

`open_sandbox` opens the strongest sandbox that works on this machine, after a self-test, and raises
an error if there is none. `default_sandbox` returns one sandbox for the entire process. Pass a
sandbox as `sandbox=` to `aflowgym.execute`, `aflowgym.grade` or an environment.

A sandbox runs calls of functions with arguments that are Python literals, and returns plain values.
The values are checked outside of the sandbox (`aflowgym.answers.code`). The `level` of a sandbox
lists the mechanisms that confine programs, and the known gaps.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Final, Literal

from aflowgym.sandbox.base import Level, Limits, SandboxRefused
from aflowgym.sandbox.subset import SubsetSandbox
from aflowgym.sandbox.unsafe import UnsafeSandbox
from aflowgym.sandbox.walled import WalledSandbox
from toolgym.forks import renew_in_child

__all__ = [
    "Level",
    "Limits",
    "SandboxRefused",
    "SubsetSandbox",
    "UnsafeSandbox",
    "WalledSandbox",
    "default_sandbox",
    "open_sandbox",
]

AnySandbox = WalledSandbox | SubsetSandbox | UnsafeSandbox
Choice = Literal["auto", "walled", "subset"]


class _Default:
    """The sandbox of this process, and the lock that is held while it is opened."""

    def __init__(self) -> None:
        self.sandbox: AnySandbox | None = None
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self.lock = threading.Lock()


_default: Final = _Default()


def open_sandbox(
    kind: Choice = "auto",
    *,
    workers: int = 2,
    limits: Limits | None = None,
    preload: Sequence[str] = (),
    unsafe: bool = False,
) -> AnySandbox:
    """Open a sandbox that has passed its self-test.

    Args:
        kind: `walled`, `subset`, or `auto` for the first of these two that works on this machine.
        workers: Maximum number of parallel jobs.
        limits: Limits of each call.
        preload: Modules that programs can import in addition to the standard library; only for
            `walled`.
        unsafe: Whether to run programs in plain processes, which have all permissions of the user.

    Raises:
        SandboxRefused: If no safe sandbox works on this machine. The message contains the reason
            and a recommendation.
        EnvironmentFault: If a process could not be started.
    """
    if unsafe:
        return UnsafeSandbox(workers, limits)
    reasons = []
    if kind in ("auto", "walled"):
        try:
            return WalledSandbox(workers, limits, preload)
        except SandboxRefused as problem:
            reasons.append(str(problem))
    if kind in ("auto", "subset"):
        try:
            return SubsetSandbox(workers, limits)
        except SandboxRefused as problem:
            reasons.append(str(problem))
    raise SandboxRefused(
        f"there is no safe sandbox for programs: {' '.join(reasons)} Use Linux with Landlock"
        " (5.13 or newer, enabled in lsm=), or install the subset interpreter with pip install"
        " 'toolgym[sandbox]'. If you trust every program, pass unsafe=True."
    )


def default_sandbox() -> AnySandbox:
    """Return the default sandbox of this process. The first call opens the sandbox.

    Raises:
        SandboxRefused: If no safe sandbox works on this machine. The message contains the reason
            and a recommendation.
    """
    with _default.lock:
        if _default.sandbox is None or _default.sandbox.closed:
            _default.sandbox = open_sandbox()
            atexit.register(_default.sandbox.close)
        return _default.sandbox
