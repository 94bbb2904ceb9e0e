"""Limits of one SQL statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from toolgym.errors import ConfigurationError

STEPS_PER_TICK = 1_000
"""Virtual-machine steps between two checks of the limits."""
MOST_BYTES = 1_000_000_000
"""Most bytes of a text or blob; SQLite's own limit."""
LEAST_HEAP = 16 << 20
"""Least `heap_bytes` in bytes; SQLite cannot raise it again in a process."""
STEPS_PER_SECOND = 5_000_000
"""Steps for which the default of `Limits.seconds` allows one second; usual are 20 to 50 million."""


@dataclass(frozen=True)
class Limits:
    """Limits of one SQL statement; all are positive.

    The limit that ends a statement is `steps`: it is reached at the same place on every machine
    with the same file and SQLite version. `seconds` only stops statements whose steps are
    unusually slow.

    Raises:
        ConfigurationError: A limit is not a positive number.

    >>> Limits.of({"steps": 2_000_000_000}).deadline
    400.0
    """

    steps: int = 20_000_000
    """Steps of SQLite's virtual machine; about half a second of work."""
    seconds: float | None = None
    """Processor time in seconds; by default one second for each 5,000,000 `steps`."""
    memory_bytes: int = 96 << 20
    """Memory that the statement may take beyond its result, in bytes."""
    rows: int = 10_000
    """Rows of a result; one with more is marked as truncated."""
    result_bytes: int = 8_000_000
    """Memory of the rows of a result, in bytes; a result with more is marked as truncated."""
    value_bytes: int = 100_000
    """Length of one text or blob, in bytes."""
    heap_bytes: int = 2 << 30
    """Memory of the SQLite library in the whole process, in bytes, including connections outside
    of this package. SQLite can only lower it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "seconds" and value is None:
                continue
            wanted = (int, float) if field.name == "seconds" else int
            if not isinstance(value, wanted) or isinstance(value, bool) or not value > 0:
                kind = "number" if field.name == "seconds" else "integer"
                raise ConfigurationError(
                    f"The limit {field.name!r} must be a positive {kind}, got {value!r}."
                )
        if self.value_bytes > MOST_BYTES or self.heap_bytes < LEAST_HEAP:
            raise ConfigurationError(
                f"The limit 'value_bytes' must be at most {MOST_BYTES:,} and 'heap_bytes' at least"
                f" {LEAST_HEAP:,}, got {self.value_bytes:,} and {self.heap_bytes:,}."
            )

    @property
    def deadline(self) -> float:
        """Processor time after which a statement is stopped, in seconds."""
        return self.steps / STEPS_PER_SECOND if self.seconds is None else self.seconds

    @classmethod
    def of(cls, limits: Limits | Mapping[str, float] | None) -> Limits:
        """Create limits from a mapping of names to numbers; None gives the defaults.

        Raises:
            ConfigurationError: A name is unknown, or a limit is not a positive number.
        """
        if limits is None or isinstance(limits, Limits):
            return limits or cls()
        names = [field.name for field in fields(cls)]
        if not isinstance(limits, Mapping):
            raise ConfigurationError(
                f"limits must be a mapping such as {{'steps': 40_000_000}}, got {limits!r}."
            )
        if unknown := [name for name in limits if name not in names]:
            raise ConfigurationError(
                f"Unknown limit {unknown[0]!r}. The limits are {', '.join(names)}."
            )
        return cls(**limits)  # type: ignore[arg-type]  # checked by `__post_init__`
