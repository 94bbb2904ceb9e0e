"""`UnicodeText`: a Gymnasium space of all Unicode strings up to a maximum length.

Gymnasium's `Text` enumerates its alphabet. A small alphabet cannot represent the contents of a
database, and a large one takes seconds to build. Vector environments with shared memory silently
return `"000..."` in place of the values of `Text`. `UnicodeText` is not a subclass of `Text`, so
such a vector environment raises an error. Pass `vector_kwargs={"shared_memory": False}` to
`gym.make_vec(..., vectorization_mode="async")`.
"""

from __future__ import annotations

import string
from typing import Any

from gymnasium.spaces import Space


class UnicodeText(Space[str]):
    """All strings of at most `max_length` code points.

    Args:
        max_length: Length of the longest string in the space, in code points.
        seed: Seed of `sample`.
    """

    _SAMPLED_LENGTH = 64

    def __init__(self, max_length: int = 1_000_000, seed: int | None = None) -> None:
        self.max_length = max_length
        super().__init__(shape=None, dtype=str, seed=seed)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Return a short random string of printable ASCII characters and some other letters."""
        alphabet = list(string.printable + "äßñøλЖ漢字🎤")
        length = int(self.np_random.integers(0, min(self._SAMPLED_LENGTH, self.max_length) + 1))
        return "".join(self.np_random.choice(alphabet, size=length))

    def contains(self, x: Any) -> bool:
        """Return whether `x` is a string of at most `max_length` code points."""
        return isinstance(x, str) and len(x) <= self.max_length

    @property
    def is_np_flattenable(self) -> bool:
        """Whether the space can be flattened: False, because text has no fixed shape."""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    def __hash__(self) -> int:
        return hash((UnicodeText, self.max_length))

    def __repr__(self) -> str:
        return f"UnicodeText({self.max_length})"
