"""Share backends with equal names and options between all environments of a process.

Loading a model takes time and memory, and request limits are enforced by a single client.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from toolgym.errors import ConfigurationError
from toolgym.forks import renew_in_child

B = TypeVar("B")


class _Made:
    """The backends of this process, and the lock that is held while a new one is created."""

    def __init__(self) -> None:
        self.backends: dict[str, Any] = {}
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self.lock = threading.Lock()


_made: Final = _Made()


def shared(name: str, options: Mapping[str, Any], make: Callable[[], B]) -> B:
    """Return the backend for a name and options.

    The first call creates the backend, and concurrent calls wait for it.

    Raises:
        ConfigurationError: If the options are not plain values.
    """
    plain = {**options, "sandbox": id(options.get("sandbox"))}
    try:
        key = json.dumps([name, plain], sort_keys=True, default=str)
    except (TypeError, ValueError) as problem:
        raise ConfigurationError(f"the options of {name} are not plain values.") from problem
    with _made.lock:
        if key not in _made.backends:
            _made.backends[key] = make()
        made: B = _made.backends[key]
        return made
