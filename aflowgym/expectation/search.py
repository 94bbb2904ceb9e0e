"""The best workflow of the stated family, per kind of task: what regret is measured against.

It is not proved to be the best of the whole language. The family has three parts: small chains with
all constructs, long chains of blocks (both in `aflowgym.expectation.family`), which are searched in
`aflowgym.expectation.meeting`, and workflows that are named. Every member of the first part is
evaluated exactly: members with a common beginning share its distribution, and all lists of a sort
are evaluated at once, along the batch axis.

To search takes up to a minute for each kind of task. For the presets and the default weights the
result stands here, and a test searches it anew. For other weights its text is kept in the cache
folder, under a name that depends on all that it depends on: the preset, the weights of the score,
how near wrong answers come on the bundled tasks, and the source of this package. What the workflow
is worth is computed anew each time. A cache that cannot be read or written is no error.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import toolgym.rewards
from aflowgym import score
from aflowgym.backends.presets import Preset, preset_of
from aflowgym.dsl import parse
from aflowgym.dsl.checking import EMPTY
from aflowgym.dsl.nodes import ListOf, Node, Seq, sequence
from aflowgym.expectation import DEFAULT_REWARDS, Expectation, expected
from aflowgym.expectation.family import (
    FAMILY,
    NAMED,
    Family,
    Left,
    Sort,
    blocks,
    count_chains,
    replace_list,
    slots_after,
    sorts,
    steps,
    within_calls,
)
from aflowgym.expectation.lists import list_matrix
from aflowgym.expectation.meeting import Meeting
from aflowgym.expectation.model import (
    FAILED,
    PASSES,
    SIZE,
    Array,
    Model,
    nearness,
    occurring,
    start,
    worth_at_end,
)
from aflowgym.expectation.walking import OpenList, Walker, closed_only
from aflowgym.tasks.task import Kind
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.rewards import RewardConfig
from toolgym.runs.files import object_text, replace_file


class Optimum(NamedTuple):
    """The best member of the family.

    Attributes:
        workflow: Its tree.
        expectation: What it is worth.
        forms: How many canonical texts the first part of the family has.
        evaluated: How many of them were evaluated: of lists that differ in the order of their
            branches, one.
        chains: How many canonical texts the second part has; some are in both.
    """

    workflow: Node
    expectation: Expectation
    forms: int
    evaluated: int
    chains: int


def optimum(
    kind: Kind,
    preset: str | Preset = "teaching",
    *,
    family: Family = FAMILY,
    rewards: RewardConfig = DEFAULT_REWARDS,
) -> Optimum:
    """The workflow of the stated family that has the highest expected reward; remembered.

    Args:
        kind: The kind of the tasks.
        preset: The skills of the operators.
        family: How far the family goes; the default takes up to a minute.
        rewards: The weights of the score.

    >>> from aflowgym.expectation.family import Family
    >>> str(optimum("math", "paper", family=Family(operators=1, blocks=0)).workflow)
    'Programmer'
    """
    return _optimum(kind, preset_of(preset), family, rewards)


@functools.lru_cache(maxsize=64)
def _optimum(kind: Kind, preset: Preset, family: Family, rewards: RewardConfig) -> Optimum:
    search = Search(kind, preset, rewards)
    search.grow((), EMPTY, search.begin, Left(family.operators), None)
    best, chains = search.best, 0
    if family.blocks:
        chains = count_chains(blocks(kind), family.blocks)
        meeting = Meeting(kind, preset, rewards, family.blocks, search.reward)
        best = meeting.best() or best
    worth = expected(best, kind, preset, rewards=rewards)
    for text in NAMED.get(kind, ()) if family.blocks else ():
        named = expected(text, kind, preset, rewards=rewards)
        tree = parse(text, kind=kind).workflow
        if tree is not None and named.reward > worth.reward:
            best, worth = tree, named
    return Optimum(best, worth, search.forms, search.evaluated, chains)


class Search(Walker):
    """A walk over all members; distributions hold the states that can occur only."""

    def __init__(self, kind: Kind, preset: Preset, rewards: RewardConfig) -> None:
        self.cap = rewards.cost_cap
        self.share, factor = score.saturation(rewards)
        super().__init__(Model(preset, kind, np.array([1.0, factor])))
        self.kind = kind
        self.states = occurring(kind, self.model.skills.loose, in_branches=False)
        self.passes = PASSES[self.states]
        self._small = functools.cache(self._restricted)
        self._matrices_of = functools.cache(self._list_matrices)
        begin = start(len(self.model.weights), self.model.points)
        self.begin: Array = begin[..., self.states]
        worth = worth_at_end(nearness(kind, self.model.skills, rewards))
        self.values: Array = self.model.weights[:, None] * worth[:, self.states]
        self.best: Node = Seq(())
        self.reward, self.forms, self.evaluated = -np.inf, 0, 0

    def matrix(self, operator: str) -> Array:
        """The matrix of an operator, over the states that can occur."""
        return self._small(operator)

    def _restricted(self, operator: str) -> Array:
        return self.model.matrix(operator)[..., self.states[:, None], self.states]

    def closing(self, opened: OpenList, ensemble: str) -> Array:
        """The states after every list of a sort and the ensemble, along the batch axis."""
        matrices = self._matrices_of(ListOf(opened.branches), ensemble)
        before = np.moveaxis(opened.before, 2, 0)[..., None, :]  # [batch, class, point, 1, state]
        return np.moveaxis(np.matmul(before, matrices)[..., 0, :], 0, 2)

    def _list_matrices(self, stands: ListOf, ensemble: str) -> Array:
        """[list, class, point, state, state]"""
        held, made = self.states[self.states != FAILED], []
        whole = Walker(self.model)
        for each in sorts()[stands].members:
            matrix = np.zeros((*self.begin.shape[:2], SIZE, SIZE))
            counts = whole.counts(each.branches, held)
            points, weight = self.model.points, self.model.skills.weight
            matrix[..., held, :] = list_matrix(counts, ensemble, points, weight, held)
            matrix[..., FAILED, FAILED] = 1.0
            made.append(matrix[..., self.states[:, None], self.states])
        return np.stack(made)

    def grow(
        self, chain: tuple[Node, ...], slots: int, states: Array, left: Left, sort: Sort | None
    ) -> None:
        """Evaluate every member that begins with a chain."""
        for nodes, rest in steps(left):
            filled = slots_after(nodes, slots, self.kind)
            if filled is None:
                continue
            whole = (*chain, *nodes)
            step = sequence(nodes)
            after = closed_only(self.walk(step, states).on)
            group, empty = sort, ListOf(())
            if rest.lists < left.lists:
                group = next(
                    s for s in sorts().values() if replace_list(step, s.stands, empty) != step
                )
            self.note(whole, after, group)
            if rest.operators:
                self.grow(whole, filled, after, rest, group)

    def rewards(self, states: Array) -> Array:
        """The rewards of the members of a batch that end in these states."""
        worth = np.einsum("kbs,ks->b", states[:, 0], self.values)
        saved = np.einsum("kbs,k->b", states[:, 1], self.model.weights)
        return np.asarray(worth - self.cap + self.share * saved)

    def note(self, chain: tuple[Node, ...], states: Array, sort: Sort | None) -> None:
        """Count a member, or the members whose lists a sort has, and keep the best."""
        within = within_calls(chain, sort)
        rewards = self.rewards(states)
        orders = np.array(sort.orders if sort else (1,))
        self.forms += int(orders[within].sum())
        self.evaluated += sum(within)
        rewards = np.where(within, rewards, -np.inf)
        place = int(rewards.argmax())
        if rewards[place] > self.reward + 1e-12:
            self.reward = float(rewards[place])
            tree = sequence(chain)
            self.best = replace_list(tree, sort.stands, sort.members[place]) if sort else tree  # type: ignore[assignment]


FOUND: Final[Mapping[tuple[str, Kind], str]] = {
    ("teaching", "math"): f"[{', '.join(['Programmer'] * 10)}] -> ScEnsemble",
    ("teaching", "code"): "CustomCodeGenerate -> Test * 3 -> Test * 5",
    ("teaching", "qa"): NAMED["qa"][0],
    ("paper", "math"): "Programmer",
    (
        "paper",
        "code",
    ): "CustomCodeGenerate -> Test * 5 -> Test * 4 -> Test ? CustomCodeGenerate : done",
    ("paper", "qa"): "AnswerGenerate -> Format",
}
"""By preset and kind, the best workflow of the whole stated family under the default weights."""


class Best(NamedTuple):
    """The best workflow of the stated family, by its canonical text, and what it is worth."""

    workflow: str
    expectation: Expectation


def best_workflow(
    kind: Kind,
    preset: str = "teaching",
    rewards: RewardConfig | None = None,
    *,
    family: Family = FAMILY,
) -> Best:
    """The result of `aflowgym.optimum`, from `FOUND` or the cache where it was found before.

    Args:
        rewards: The weights of the score; None for the defaults.

    >>> best_workflow("math", "paper").workflow
    'Programmer'
    """
    weights = RewardConfig.of(rewards)
    text = FOUND.get((preset, kind)) if (family, weights) == (FAMILY, DEFAULT_REWARDS) else None
    if text is None:
        text = _search(kind, preset, weights, family)
    return Best(text, expected(text, kind, preset, rewards=weights))


def _search(kind: Kind, preset: str, weights: RewardConfig, family: Family) -> str:
    file = _file(kind, preset, weights, family)
    text = _kept(file, kind)
    if text is None:
        what = f"searching the best workflow of the family for {kind} tasks (preset {preset}), once"
        long_work.tell(what, 0, 1)
        text = str(optimum(kind, preset, family=family, rewards=weights).workflow)
        long_work.tell(what, 1, 1)
        _keep(file, text)
    return text


def _kept(file: Path, kind: Kind) -> str | None:
    """The text in a file; None if it is not there, or holds none that can run."""
    try:
        text = json.loads(file.read_bytes())["workflow"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return text if isinstance(text, str) and str(parse(text, kind=kind).workflow) == text else None


def _keep(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, [object_text({"workflow": text})])
    except OSError:
        return  # a full disk or a folder without rights: it is found anew next time


def _file(kind: Kind, preset: str, rewards: RewardConfig, family: Family) -> Path:
    skills = preset_of(preset)
    near = nearness(kind, skills.skills(kind), rewards)
    state = f"{_source()}\0{kind}\0{skills!r}\0{rewards.model_dump_json()}\0{family!r}\0"
    digest = hashlib.sha256(state.encode() + near.tobytes()).hexdigest()
    return cache_folder() / "workflows" / "optima" / f"{digest[:32]}.json"


@functools.cache
def _source() -> str:
    """A hash of the files that decide what a workflow is worth."""
    digest = hashlib.sha256()
    files = sorted(Path(__file__).parents[1].glob("**/*.py"))
    for path in [*files, Path(toolgym.rewards.__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
