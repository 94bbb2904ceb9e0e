"""The best of the stated family, against a search of the whole language that knows no family."""

import pytest

from aflowgym import parse
from aflowgym.expectation.search import FOUND, best_workflow
from tests.aflowgym.expectation.workflow_search import Climber

TRIES = 20_000


def tree_of(text, kind):
    return parse(text, kind=kind).workflow


@pytest.mark.nightly
@pytest.mark.parametrize(("preset", "kind"), FOUND)
def test_a_search_of_the_whole_language_finds_nothing_better(preset, kind):
    """Half of the tries from the best of the family, half from scratch."""
    best = best_workflow(kind, preset)
    near, far = (Climber(kind, preset, seed) for seed in (0, 1))
    near.climbs(TRIES // 2, tree_of(best.workflow, kind))
    far.climbs(TRIES // 2)

    for climber in (near, far):
        assert climber.tried == TRIES // 2
        assert climber.reward <= best.expectation.reward + 1e-9, str(climber.workflow)
