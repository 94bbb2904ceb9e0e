"""A cache for results of short texts.

Texts of operators and policies often repeat: groups of rollouts end in few different solutions, and
a look-up is faster than reading a text again. Long texts, such as those of a broken model, do not
repeat, and a cache of thousands of them would fill the memory. So a call is not cached if its texts
are longer than `LONGEST` in total.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Maximum total number of characters of the texts of a cached call.
LONGEST: Final = 8_000


def remembered(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a function.

    Its arguments must be hashable, and its texts must be direct arguments.

    Args:
        maxsize: Maximum number of results, the most recently used.
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
