"""The best workflow of the stated family: nothing is left out, nothing counted twice."""

import itertools
import random

import pytest

from aflowgym import expected, optimum, parse
from aflowgym.backends.presets import PRESETS
from aflowgym.dsl.checking import EMPTY
from aflowgym.dsl.nodes import ListOf, Repeat, Seq, children
from aflowgym.expectation.family import (
    STARTS,
    Family,
    Left,
    chains,
    replace_list,
    sorts,
    within_calls,
)
from aflowgym.expectation.search import Search, best_workflow
from toolgym import RewardConfig

KINDS = ("math", "code", "qa")


def members(operators, kind):
    """Every member of the family, by its text, one per order of branches: slowly, by `parse`."""
    found = {}
    for chain, _ in chains(Left(operators)):
        tree = chain[0] if len(chain) == 1 else Seq(chain)
        stands = next(
            (each for each in sorts() if replace_list(tree, each, ListOf(())) != tree), None
        )
        lists = [None] if stands is None else orders(stands)
        for each in lists:
            text = str(tree if each is None else replace_list(tree, stands, each))
            parsed = parse(text, kind=kind)
            if parsed.workflow is not None:
                assert text not in found
                assert str(parsed.workflow) == text
                found[text] = parsed.workflow
    return found


def orders(stands):
    of_programs = {str(each) for each in STARTS} & {"CustomCodeGenerate", "Programmer"}
    tested = {str(each) for each in stands.branches} <= of_programs
    for count in range(2, 6):
        for branches in itertools.product(STARTS, repeat=count):
            if ({str(each) for each in branches} <= of_programs) == tested:
                yield ListOf(branches)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_every_member_is_counted_once(kind):
    assert optimum(kind, family=Family(2, 0)).forms == len(members(2, kind))


class Noted(Search):
    """A search that remembers what each member is worth."""

    def __init__(self, kind, preset):
        super().__init__(kind, preset, RewardConfig())
        self.worth = []

    def note(self, chain, states, sort):
        super().note(chain, states, sort)
        tree = chain[0] if len(chain) == 1 else Seq(chain)
        within = within_calls(chain, sort)
        for place, reward in enumerate(self.rewards(states)):
            if within[place]:
                whole = replace_list(tree, sort.stands, sort.members[place]) if sort else tree
                self.worth.append((whole, reward))


@pytest.mark.nightly
@pytest.mark.parametrize("operators", [2, 3])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_members_are_worth_what_is_expected_and_the_optimum_most(kind, preset, operators):
    """Two values of a generating function against the whole joint distribution."""
    search = Noted(kind, PRESETS[preset])
    search.grow((), EMPTY, search.begin, Left(operators), None)
    best = optimum(kind, preset, family=Family(operators, 0))

    assert len(search.worth) == search.evaluated == best.evaluated
    assert best.expectation.reward == pytest.approx(max(r for _, r in search.worth), abs=1e-10)
    for tree, reward in random.Random(0).sample(search.worth, 25):
        assert parse(str(tree), kind=kind).workflow == tree
        assert expected(tree, kind, preset).reward == pytest.approx(reward, abs=1e-10), str(tree)


def constructs(node):
    yield type(node)
    for child in children(node):
        yield from constructs(child)


@pytest.mark.nightly
def test_the_optimum_of_teaching_depends_on_the_kind():
    """A vote for math, tests for code, review and form for questions."""
    best = {kind: optimum(kind, family=Family(3, 0)) for kind in KINDS}
    found = {kind: set(constructs(each.workflow)) & {ListOf, Repeat} for kind, each in best.items()}

    assert found == {"math": {ListOf}, "code": {Repeat}, "qa": {Repeat}}
    assert str(best["qa"].workflow).endswith("Format")
    for kind, other in itertools.permutations(KINDS, 2):
        if parse(str(best[other].workflow), kind=kind).workflow is not None:
            regret = best[kind].expectation.reward - expected(best[other].workflow, kind).reward
            assert regret > 0.1, (kind, other)


def test_the_optimum_is_remembered():
    assert optimum("math", family=Family(1, 0)) is optimum("math", family=Family(1, 0))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("preset", "kind"), [("teaching", "math"), ("teaching", "qa"), ("paper", "math")]
)
def test_the_best_of_the_whole_family_is_found_anew(preset, kind):
    """Those that are found soonest; the others were found, too."""
    best = optimum(kind, preset)

    known = best_workflow(kind, preset).expectation.reward
    assert best.expectation.reward == pytest.approx(known, abs=1e-9), str(best.workflow)
    assert best.chains > 20_000_000_000
