"""Sandboxes for programs that a language model wrote, hostile until proved otherwise.

`open_sandbox` gives the strongest that works on this machine, after it has proved itself, and
refuses where none does; `default_sandbox` gives one for the whole process. Either is passed as
`sandbox=` to `aflowgym.execute`, `aflowgym.grade` or an environment. Nothing is chosen by the name
of a system or its version: each is tried as it will be used. What is not safe is never a fallback.

What runs there is one call of a function at a time. Arguments go in as texts of literals, a plain
value comes out; whether it is the right one is decided outside (`aflowgym.answers.code`), where no
program reaches. `level` of a sandbox tells which walls stand and what they leave open.
"""

from __future__ import annotations

import sys
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
    """The sandbox of this process, and the lock under which it is opened."""

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
    """Open a sandbox that has proved what it protects from; its `level` tells.

    Args:
        kind: `walled`, `subset`, or `auto`: the first of these that works here.
        workers: How many jobs run at the same time.
        limits: Of each call.
        preload: Modules that programs may import besides the standard library; `walled` only.
        unsafe: Run programs in plain processes that can do whatever you can. Nothing is tried
            before it.

    Raises:
        SandboxRefused: Nothing safe works here; says why, and what to do.
        EnvironmentFault: A process could not be started.
    """
    if unsafe:
        return UnsafeSandbox(workers, limits)
    reasons = []
    if kind in ("auto", "walled"):
        try:
            return _walled(workers, limits, preload)
        except SandboxRefused as problem:
            reasons.append(str(problem))
    if kind in ("auto", "subset"):
        try:
            return SubsetSandbox(workers, limits)
        except SandboxRefused as problem:
            reasons.append(str(problem))
    raise SandboxRefused(
        f"there is no safe place to run programs: {' '.join(reasons)} Take a Linux with Landlock"
        " (5.13 or newer, in lsm=), install the subset interpreter with pip install"
        " 'toolgym[sandbox]', or, if you trust every program, say unsafe=True."
    )


def _walled(workers: int, limits: Limits | None, preload: Sequence[str]) -> WalledSandbox:
    if not sys.platform.startswith("linux"):
        raise SandboxRefused(f"{sys.platform} has neither seccomp nor Landlock.")
    return WalledSandbox(workers, limits, preload)


def default_sandbox() -> AnySandbox:
    """The sandbox of this process, opened when it is first asked for and closed at its end.

    One that somebody has closed is followed by a new one.

    Raises:
        SandboxRefused: Nothing safe works here; says why, and what to do.
    """
    with _default.lock:
        if _default.sandbox is None or _default.sandbox.closed:
            _default.sandbox = open_sandbox()
        return _default.sandbox
