"""Sweeps: parameters of which a few run in `make test` and the others in `make test-nightly`."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sweep(
    cases: Iterable[Any], quick: Iterable[str], name: Callable[[Any], str] = str
) -> list[Any]:
    """Parameters with their names as ids, all but the quick ones marked `nightly`.

    Raises:
        ValueError: A quick one is not among the cases, so that a renamed case is noticed.
    """
    named = {name(case): case for case in cases}
    if unknown := set(quick) - set(named):
        raise ValueError(f"no such case: {sorted(unknown)}; there are {sorted(named)}")
    return [
        pytest.param(case, id=key, marks=() if key in quick else pytest.mark.nightly)
        for key, case in named.items()
    ]
