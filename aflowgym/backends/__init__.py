"""Where operators get their texts: simulated, recorded, scripted, or from a backend of your own.

A backend is any object with `generate`, `agenerate` and `sandbox` (`aflowgym.protocols`).
`make_backend` finds one by name, for command lines and configurations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aflowgym.backends.presets import PRESETS, Preset, Skills
from aflowgym.backends.replay import Recorder, Replay
from aflowgym.backends.scripted import ScriptedBackend
from aflowgym.backends.simulated import SimulatedBackend
from aflowgym.protocols import Backend, Completion, Job, Request, Sandbox
from toolgym.errors import ConfigurationError

__all__ = [
    "PRESETS",
    "Backend",
    "Completion",
    "Job",
    "Preset",
    "Recorder",
    "Replay",
    "Request",
    "Sandbox",
    "ScriptedBackend",
    "SimulatedBackend",
    "Skills",
    "make_backend",
]

#: Names that are kept for language models; none of them is built yet.
REAL: Final = ("openai", "transformers")


def make_backend(name: str | Backend) -> Backend:
    """A backend by name.

    Args:
        name: `simulated` or `simulated:PRESET`; `replay:FILE`; or a backend, which is returned.

    Raises:
        ConfigurationError: None is called so, or it is one that this version does not have.

    >>> make_backend("simulated:paper").preset.name
    'paper'
    """
    if not isinstance(name, str):
        return name
    what, _, rest = name.partition(":")
    if what == "simulated":
        return SimulatedBackend(rest or "teaching")
    if what == "replay" and rest:
        return Replay.load(Path(rest))
    known = "simulated, simulated:PRESET, replay:FILE"
    if what in REAL:
        raise ConfigurationError(
            f"this version has no backend {what!r}: pass an object with generate, agenerate and"
            f" sandbox that asks your model, or take one of {known}."
        )
    raise ConfigurationError(f"no backend {name!r}; there are {known}.")
