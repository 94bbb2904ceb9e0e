"""Limits of one SQL statement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from toolgym.errors import ConfigurationError

STEPS_PER_TICK = 1_000
"""Virtual-machine steps between two checks of the limits."""
MOST_BYTES = 1_000_000_000
"""Maximum length of a text or blob in bytes, set by SQLite."""
LEAST_HEAP = 16 << 20
"""Minimum of `heap_bytes`, in bytes. A process cannot raise the heap limit again."""
STEPS_PER_SECOND = 5_000_000
"""Number of steps per second that the default of `Limits.seconds` assumes. SQLite usually runs 20
to 50 million steps per second.
"""


@dataclass(frozen=True)
class Limits:
    """Limits of one SQL statement. All are positive.

    `steps` is the limit that usually ends a statement. This limit ends a statement at the same
    point on every machine with the same file and SQLite version. `seconds` only stops statements
    whose steps are unusually slow.

    Raises:
        ConfigurationError: A limit is not a positive number.

    >>> Limits.of({"steps": 2_000_000_000}).deadline
    400.0
    """

    steps: int = 20_000_000
    """Number of steps of SQLite's virtual machine. The default allows about half a second."""
    seconds: float | None = None
    """CPU time in seconds. By default, one second for each 5,000,000 `steps`."""
    memory_bytes: int = 96 << 20
    """Memory for the statement in bytes, not including its result."""
    rows: int = 10_000
    """Maximum number of rows. A longer result is truncated and marked as such."""
    result_bytes: int = 8_000_000
    """Maximum total size of the rows in bytes. A larger result is truncated and marked as such."""
    value_bytes: int = 100_000
    """Maximum length of a string or blob in bytes."""
    heap_bytes: int = 2 << 30
    """Memory in bytes for all SQLite connections of the process, including those of other code. The
    limit can be lowered but not raised while the process runs.
    """

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
