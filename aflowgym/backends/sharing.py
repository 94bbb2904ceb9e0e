"""Backends that all environments of a process share: one for equal names and options.

To load a model takes long and much memory, and the limits of a server are kept by one client. Equal
names and options mean the same backend; a sandbox is an option like any other, told by which it is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from toolgym.errors import ConfigurationError
from toolgym.forks import renew_in_child

B = TypeVar("B")


class Shared(Generic[B]):
    """Backends of one sort, by their names and options."""

    def __init__(self) -> None:
        self._made: dict[str, B] = {}
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Let go of a lock that a thread of the parent held; what is made is kept."""
        self._lock = threading.Lock()

    def get(self, name: str, options: Mapping[str, Any], make: Callable[[], B]) -> B:
        """The backend of a name and its options, made if there is none yet; others wait meanwhile.

        Raises:
            ConfigurationError: The options are no plain values.
        """
        plain = {**options, "sandbox": id(options.get("sandbox"))}
        try:
            key = json.dumps([name, plain], sort_keys=True, default=str)
        except (TypeError, ValueError) as problem:
            raise ConfigurationError(f"the options of {name} are no plain values.") from problem
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]
