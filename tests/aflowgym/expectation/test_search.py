"""The long chains of the stated family: appraised rightly, none left out, the best of them told."""

import math
import random
import re
from pathlib import Path

import pytest

from aflowgym import expected, optimum, parse
from aflowgym.backends.presets import PRESETS
from aflowgym.dsl.nodes import Seq
from aflowgym.envs.players import FIRST
from aflowgym.expectation.family import FAMILY, blocks, count_chains
from aflowgym.expectation.meeting import Meeting
from aflowgym.expectation.search import FOUND, best_workflow
from tests.aflowgym.expectation.workflow_search import Climber, is_valid
from toolgym import RewardConfig

KINDS = ("math", "code", "qa")


def tree_of(text, kind):
    return parse(text, kind=kind).workflow


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_parses_and_is_appraised_as_expected(kind, preset):
    climber, compared = Climber(kind, preset, seed=3), 0
    for _ in range(8):
        for tree in (drawn := climber.drawn(), climber.near(drawn)):
            assert tree_of(str(tree), kind) == tree
            if len(str(tree)) < 150:  # long lists take `expected` a second
                worth = expected(tree, kind, preset).reward
                assert climber.tries(tree) == pytest.approx(worth, abs=1e-10), str(tree)
                compared += 1
    assert compared > 8


def chains(known, kind, most, begun=()):
    """All chains of some blocks up to a weight, slowly, by the checks of the language."""
    for block in known:
        after = (*begun, block)
        if sum(each.size[2] for each in after) > most:
            continue
        steps = tuple(node for each in after for node in each.nodes)
        tree = steps[0] if len(steps) == 1 else Seq(steps)
        long = begun and len(getattr(block.nodes[0], "branches", ())) > 5
        if is_valid(tree, kind) and not long:
            yield after, tree
            yield from chains(known, kind, most, after)


def some_blocks(kind):
    """A few of each sort, so that each chain of them can be looked at alone."""
    rng, every = random.Random(1), blocks(kind)
    light = [each for each in every if each.size[2] == 1]
    begins = rng.sample([each for each in light if each.stands[0]], 2)
    follows = rng.sample([each for each in light if not each.stands[0]], 3)
    lists = [each for each in every if each.size[2] == 2]
    short = rng.sample([each for each in lists if any(each.stands[1:])], 1)
    return (*begins, *follows, *short, *rng.sample(lists, 1))


@pytest.mark.parametrize(
    ("kind", "preset"), [("math", "paper"), ("code", "teaching"), ("qa", "teaching")]
)
def test_no_chain_of_blocks_is_left_out(kind, preset):
    meeting = Meeting(kind, PRESETS[preset], RewardConfig(), 5, -1.0)
    meeting.known = some_blocks(kind)
    found = list(chains(meeting.known, kind, 5))
    best = meeting.best()

    rewards = [meeting.appraiser.reward(tree) for _, tree in found]
    assert len(found) > 200
    assert meeting.appraiser.reward(best) == pytest.approx(max(rewards), abs=1e-10)
    orders = [math.prod(block.orders for block in each) for each, _ in found]
    assert count_chains(meeting.known, 5) == sum(orders)


def test_the_page_has_the_best_of_the_family_and_its_size():
    page = (Path(__file__).parents[3] / "docs" / "workflow-execution.md").read_text("utf-8")
    rows = [
        re.findall(r"`(.*)`|([\w.]+)", line)
        for line in page.splitlines()
        if "| teaching |" in line or "| paper |" in line
    ]
    told = {}
    for cells in rows:
        kind, preset, *figures = (each[1] for each in cells[:5])
        told[preset, kind] = (str(tree_of(cells[5][0], kind)), *map(float, figures))

    assert told == {
        key: (text, round(worth.reward, 4), round(worth.accuracy, 4), round(worth.calls, 2))
        for key, text in FOUND.items()
        for worth in [expected(text, key[1], key[0])]
    }
    for kind in KINDS:
        assert f"{count_chains(blocks(kind), FAMILY.blocks):,}" in page


def test_the_page_says_how_much_better_the_best_is_than_what_is_learnt():
    page = (Path(__file__).parents[3] / "docs" / "workflow-environments.md").read_text("utf-8")
    lost = {
        kind: best_workflow(kind).expectation.reward
        - expected(FIRST["teaching", kind], kind).reward
        for kind in KINDS
    }
    math_, code, qa = (f"{each:.3f}"[1:] for each in lost.values())

    assert f"worth {math_} less than the best of the family" in " ".join(page.split())
    assert f"the last {qa} less" in page
    assert page.count(f"| {math_}, {code}, {qa} |") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "kind"), [("teaching", "math"), ("teaching", "qa"), ("paper", "math")]
)
def test_the_best_of_the_family_is_found_anew(preset, kind):
    """Those that are found soonest; the others were found, too."""
    best = optimum(kind, preset)

    known = best_workflow(kind, preset).expectation.reward
    assert best.expectation.reward == pytest.approx(known, abs=1e-9), str(best.workflow)
    assert best.chains > 20_000_000_000
