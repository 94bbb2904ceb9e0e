"""A cache for functions whose arguments are short strings.

Outputs of operators and policies are often repeated: the rollouts of a group often end with only a
few different solutions, and a cache lookup is faster than parsing a string again. Long strings,
such as the output of a degenerate model, are rarely repeated, and caching thousands of them would
fill the memory. Therefore a call is not cached if its strings are longer than `LONGEST` in total.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Maximum total length of the strings in a cached call.
LONGEST: Final = 8_000


def remembered(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that its results are cached.

    The arguments must be hashable, and strings must be passed directly as arguments, not inside of
    other objects.

    Args:
        maxsize: Maximum number of cached results; the least recently used are evicted.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached = functools.lru_cache(maxsize)(function)

        @functools.wraps(function)
        def recalled(*args: P.args, **kwargs: P.kwargs) -> R:
            size = sum([len(each) for each in args if type(each) is str])
            if size > LONGEST:
                return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # hashable, as is said above

        recalled.cache_clear = cached.cache_clear  # type: ignore[attr-defined]  # as lru_cache has
        return recalled

    return decorate
