"""A random and hill-climbing search through the whole language, for a workflow that is worth more.

It knows nothing of the stated family: workflows are drawn in all shapes that the grammar has, and
changed by putting in, taking out, exchanging and wrapping any of their parts. What is not well
typed, or beyond the limits of the language, is drawn anew.
"""

import math
import random
from dataclasses import replace

from aflowgym.backends.presets import PRESETS
from aflowgym.dsl import check
from aflowgym.dsl.checking import DEFAULT_LIMITS
from aflowgym.dsl.nodes import DONE, Cond, Done, ListOf, Op, Repeat, Seq, children, sequence
from aflowgym.expectation.walking import Appraiser
from aflowgym.operators.catalogue import OPERATORS
from toolgym import RewardConfig

ENSEMBLES = [name for name, each in OPERATORS.items() if each.is_ensemble]
STARTS = [name for name, each in OPERATORS.items() if not each.needs]
COUNTS = (2, 3, 4, 5, 6, 8, 10, 11)


def chained(*nodes):
    return sequence(list(nodes), (0, 0))


def is_valid(tree, kind):
    """Whether `parse` would run it, without a text in between."""
    return not any(each.code[0] == "E" for each in check(tree, OPERATORS, kind, DEFAULT_LIMITS))


class Dice:
    """Draws workflows and changes of workflows, valid or not."""

    def __init__(self, kind, rng):
        self.rng = rng
        known = {
            name: each
            for name, each in OPERATORS.items()
            if not each.is_ensemble and kind in (each.kinds or (kind,))
        }
        self.plain = list(known)
        self.checks = [name for name, each in known.items() if each.is_check]

    def op(self, names=None):
        return Op(self.rng.choice(names or self.plain))

    def chain(self, depth, first=False):
        """Steps in a row; `first` begins it by what needs nothing, more often than not."""
        steps = [self.step(depth) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3)))]
        if first and self.rng.random() < 0.8:
            some = depth > 0 and self.rng.random() < 0.5
            steps[0] = self.list(depth) if some else self.op(STARTS)
        return chained(*steps)

    def step(self, depth):
        shape = self.rng.random() if depth > 0 else 0.0
        if shape < 0.5:
            return self.op()
        if shape < 0.65:
            return self.list(depth)
        if shape < 0.8:
            return Repeat(self.chain(depth - 1), self.rng.randint(2, 5))
        passed = DONE if self.rng.random() < 0.6 else self.chain(depth - 1)
        return Cond(self.check(depth - 1), self.chain(depth - 1), passed)

    def list(self, depth):
        branches = [self.chain(depth - 1, first=True) for _ in range(self.rng.choice(COUNTS))]
        if self.rng.random() < 0.5:
            branches = branches[:1] * len(branches)
        return Seq((ListOf(tuple(branches)), self.op(ENSEMBLES)))

    def check(self, depth):
        some = depth > 0 and self.rng.random() < 0.2
        return (
            chained(self.chain(depth - 1), self.op(self.checks)) if some else self.op(self.checks)
        )

    def changed(self, tree):
        """A tree with one part changed."""
        paths = list(_places(tree, ()))
        for _ in range(20):
            path, node = self.rng.choice(paths)
            new = self.another(node)
            if new is not None and new != node:
                return _put(tree, path, new)
        return tree

    def another(self, node):
        """A part in place of one; None where this change is none of it."""
        if isinstance(node, Op) and node.name in ENSEMBLES:
            return self.op(ENSEMBLES)
        if self.rng.random() < 0.5:
            return self.wrapped(node)
        changes = {Op: self._op, Seq: self._seq, ListOf: self._list, Repeat: self._repeat}
        return changes.get(type(node), self._cond)(node)

    def wrapped(self, node):
        """More around a part, or something else in its place."""
        rng = self.rng
        makers = (
            lambda: self.step(2),
            lambda: chained(node, self.step(1)),
            lambda: chained(self.step(1), node),
            lambda: Seq((ListOf((node,) * rng.choice(COUNTS)), self.op(ENSEMBLES))),
            lambda: Repeat(node, rng.randint(2, 5)),
            lambda: Cond(self.check(1), node, DONE),
            lambda: Cond(self.check(1), self.op(), node),
        )
        return rng.choice(makers)()

    def _op(self, node):
        return self.op()

    def _seq(self, node):
        rng, steps = self.rng, list(node.steps)
        place, other = rng.randrange(len(steps)), rng.randrange(len(steps))
        if (way := rng.random()) < 0.35:
            del steps[place]
            if place < len(steps) and isinstance(node.steps[place], ListOf):
                del steps[place]  # with its ensemble
            return chained(*steps) if steps else None
        if way < 0.5:
            steps[place], steps[other] = steps[other], steps[place]
        elif way < 0.75:
            steps.insert(place, self.step(1))
        else:
            low, high = min(place, other), max(place, other) + 1
            steps[low:high] = [self.wrapped(chained(*steps[low:high]))]
        return chained(*steps)

    def _list(self, node):
        rng, branches = self.rng, list(node.branches)
        place, way = rng.randrange(len(branches)), rng.random()
        if way < 0.3:
            branches.append(branches[place])
        elif way < 0.45:
            branches.append(self.chain(1, first=True))
        elif way < 0.75:
            del branches[place]
        elif way < 0.9:
            branches[place] = rng.choice(branches)
        else:
            branches = [branches[place]] * rng.choice(COUNTS)
        return ListOf(tuple(branches)) if branches else None

    def _repeat(self, node):
        some = self.rng.random() < 0.5
        return replace(node, times=self.rng.randint(2, 5)) if some else node.body

    def _cond(self, node):
        sides = [each for each in (node.fail, node.passed) if not isinstance(each, Done)]
        makers = (
            lambda: chained(node.check, *sides[:1]),
            lambda: self.rng.choice(sides),
            lambda: replace(node, passed=DONE) if len(sides) > 1 else None,
            lambda: replace(node, passed=self.op()),
            lambda: replace(node, fail=self.op()),
        )
        return self.rng.choice(makers)()


def _places(node, path):
    yield path, node
    for place, child in enumerate(children(node)):
        if not isinstance(child, Done):
            yield from _places(child, (*path, place))


def _put(node, path, new):
    if not path:
        return new
    parts = list(children(node))
    parts[path[0]] = _put(parts[path[0]], path[1:], new)
    match node:
        case Seq():
            return chained(*parts)
        case ListOf():
            return ListOf(tuple(parts))
        case Repeat():
            return Repeat(parts[0], node.times)
    return Cond(*parts)


class Climber:
    """A search on one kind of task, which keeps the best that it has seen.

    A step down is taken now and then, the rarer the further it is; after a while without a new
    best of its climb it begins anew.
    """

    PATIENCE, HEAT = 1500, (0.0003, 0.001, 0.004)

    def __init__(self, kind, preset, seed, rewards=None):
        self.kind, self.rng = kind, random.Random(seed)
        self.dice = Dice(kind, self.rng)
        self.appraiser = Appraiser(kind, PRESETS[preset], RewardConfig.of(rewards))
        self.reward, self.workflow, self.tried = -math.inf, None, 0

    def tries(self, tree):
        """What a workflow is worth."""
        self.tried += 1
        reward = self.appraiser.reward(tree)
        if reward > self.reward:
            self.reward, self.workflow = reward, tree
        return reward

    def drawn(self):
        """Any valid workflow."""
        while not is_valid(tree := self.dice.chain(3, first=True), self.kind):
            pass
        return tree

    def near(self, tree):
        """A valid workflow that differs in a few places."""
        while True:
            new = tree
            for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
                new = self.dice.changed(new)
            if new != tree and is_valid(new, self.kind):
                return new

    def climbs(self, tries, start=None):
        """So many workflows, each climb from `start`, or from the best of some that are drawn."""
        end = self.tried + tries
        while self.tried < end:
            begins = [start] if start is not None else [self.drawn() for _ in range(20)]
            reward, tree = max(((self.tries(each), -i) for i, each in enumerate(begins)))
            tree, top, since = begins[-tree], reward, 0
            heat = self.rng.choice(self.HEAT)
            while self.tried < end and since < self.PATIENCE:
                new = self.near(tree)
                worth = self.tries(new)
                since += 1
                if worth >= reward or self.rng.random() < math.exp((worth - reward) / heat):
                    tree, reward = new, worth
                if reward > top + 1e-12:
                    top, since = reward, 0
