"""Results that are remembered for short texts only.

What operators and policies write repeats: groups of rollouts end in few different solutions, and to
read one anew takes longer than to look it up. What a broken model writes is long and never repeats,
and a memory of thousands of such texts would fill the machine. So a call whose texts are longer
than `LONGEST` together is made and not remembered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Characters of all the texts of one call up to which its result is remembered.
LONGEST: Final = 8_000


def remembered(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Remember what a function returned; its arguments are hashable, its texts direct arguments.

    Args:
        maxsize: How many results, the most recently used.
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
