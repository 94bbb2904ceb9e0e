"""Backends, which generate the replies to operators.

A backend uses a language model, or simulates one, replays its recorded replies, or follows a
script. Any object with the attributes `generate` and `sandbox` can be a backend
(`aflowgym.operators.context`). `make_backend` returns a backend by name, for command-line options
and configuration files. `OpenAIBackend` and `TransformersBackend`, which use a language model, are
in separate modules that need extras.
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

    A model is loaded, or a client created, only once for the same name and options.

    Args:
        name: `simulated` or `simulated:PRESET`; `replay:FILE`; `openai:MODEL` for a model on a
            server; `transformers:FOLDER` for a model in this process; a dict with a `name` and
            options, as in `{"name": "openai:m", "base_url": "http://127.0.0.1:8000/v1"}`; or a
            backend object, which is returned as is.
        options: Additional options, by name. Only backends that use a language model have options.

    Raises:
        ConfigurationError: If there is no such backend, or it does not support an option.

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
