"""Backends, which generate the replies to operators.

A backend is a language model, or a simulation, recording or script of one. Any object with
`generate` and `sandbox` can be a backend (`aflowgym.operators.context`). `make_backend` returns a
backend by name, for command lines and configurations. `OpenAIBackend` and `TransformersBackend`,
which use a language model, are in separate modules that need extras.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aflowgym.backends.replay import Recorder, Replay, ScriptedBackend
from aflowgym.backends.simulated import PRESETS, Preset, SimulatedBackend, Skills
from aflowgym.operators.context import Backend
from toolgym.errors import ConfigurationError

__all__ = [
    "PRESETS",
    "Backend",
    "Preset",
    "Recorder",
    "Replay",
    "ScriptedBackend",
    "SimulatedBackend",
    "Skills",
    "make_backend",
]

_KNOWN: Final = (
    "simulated, simulated:PRESET, replay:FILE, openai:MODEL, transformers:FOLDER, or a dict with"
    " such a name and its options"
)


def make_backend(name: str | Mapping[str, Any] | Backend, **options: Any) -> Backend:
    """Return a backend by name.

    For equal names and options, a model is loaded, and a client is created, only once.

    Args:
        name: `simulated` or `simulated:PRESET`; `replay:FILE`; `openai:MODEL` for a model on a
            server; `transformers:FOLDER` for a model in this process; a dict with such a `name` and
            its options, as in `{"name": "openai:m", "base_url": "http://127.0.0.1:8000/v1"}`; or a
            backend object, which is returned unchanged.
        options: Additional options, by name. Only backends with a model have options.

    Raises:
        ConfigurationError: If there is no such backend, or it has no such option.

    >>> make_backend("simulated:paper").preset.name
    'paper'
    """
    if isinstance(name, Mapping):
        options = {**name, **options}
        name = str(options.pop("name", ""))
    if not isinstance(name, str):
        return name
    what, _, rest = name.partition(":")
    if what == "openai":
        from aflowgym.backends.openai import shared_server

        return shared_server(rest, options)
    if what == "transformers":
        from aflowgym.backends.transformers import shared_model

        return shared_model(rest, options)
    if options:
        raise ConfigurationError(f"the backend {name!r} has no options; got {', '.join(options)}.")
    if what == "simulated":
        return SimulatedBackend(rest or "teaching")
    if what == "replay" and rest:
        return Replay.load(Path(rest))
    raise ConfigurationError(f"unknown backend {name!r}; use {_KNOWN}.")
