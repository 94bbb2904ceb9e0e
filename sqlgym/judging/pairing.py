"""Whether two lists of things can be paired, each with one of its own that fits.

"Fits" is no equality: within a tolerance two things may fit a third and not each other, so the
first partner that is found need not be the right one. Hopcroft and Karp (1973) ask at most `n * n`
times whether two things fit, and take `n * n * sqrt(n)` steps after that, whatever the answers are.
Trying partners one after another, and others when that fails, can ask `n * n * n` times.

`clusters` cuts a list of numbers where neighbours do not fit, so that only what stands between two
cuts needs to be paired at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def pair_up(size: int, fits: Callable[[int, int], bool]) -> bool:
    """Whether each left thing can get a right thing of its own that fits.

    Args:
        size: How many there are on each side.
        fits: Whether left thing `i` fits right thing `j`; asked at most once for each pair.
    """
    choices: list[list[int]] = []
    for left in range(size):
        choices.append([right for right in range(size) if fits(left, right)])
        if not choices[-1]:
            return False
    if len({right for found in choices for right in found}) < size:
        return False
    partner = [-1] * size  # of each left thing
    owner = [-1] * size  # of each right thing
    while -1 in partner:
        levels = _levels(choices, partner, owner)
        if not sum(_lead(left, choices, partner, owner, levels) for left in _free(partner)):
            return False
    return True


def clusters(numbers: Iterable[float], fits: Callable[[float, float], bool]) -> dict[float, int]:
    """The cluster of each number; numbers of two clusters never fit.

    Args:
        numbers: In any order, none of them NaN.
        fits: Whether two of them do; of numbers further apart, only if those between do.
    """
    found: dict[float, int] = {}
    last: float | None = None
    place = 0
    for number in sorted(set(numbers)):
        place += last is not None and not fits(last, number)
        found[number] = place
        last = number
    return found


def _free(partner: Sequence[int]) -> list[int]:
    return [left for left, right in enumerate(partner) if right < 0]


def _levels(choices: list[list[int]], partner: list[int], owner: list[int]) -> list[int]:
    """How many exchanges each left thing is away from one without a partner; -1 if it is not."""
    layer = _free(partner)
    levels = [-1] * len(choices)
    for left in layer:
        levels[left] = 0
    depth, is_end = 0, False
    while layer and not is_end:
        depth += 1
        following = []
        for left in layer:
            for right in choices[left]:
                other = owner[right]
                if other < 0:
                    is_end = True
                elif levels[other] < 0:
                    levels[other] = depth
                    following.append(other)
        layer = following
    return levels


def _lead(
    first: int, choices: list[list[int]], partner: list[int], owner: list[int], levels: list[int]
) -> bool:
    """Find a right thing for a left one by a chain of exchanges along the levels, and exchange.

    A left thing that leads nowhere loses its level, so that all searches together look at each
    choice once. The chain is a list and no recursion: it can be as long as there are things.
    """
    chain = [(first, iter(choices[first]))]
    taken: list[int] = []
    while chain:
        left, rest = chain[-1]
        for right in rest:
            other = owner[right]
            if other < 0:
                for (each, _), given in zip(chain, [*taken, right], strict=True):
                    partner[each], owner[given] = given, each
                    levels[each] = -1
                return True
            if levels[other] == levels[left] + 1:
                taken.append(right)
                chain.append((other, iter(choices[other])))
                break
        else:
            levels[left] = -1
            chain.pop()
            if taken:
                taken.pop()
    return False
