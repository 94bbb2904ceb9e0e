"""The best workflow of the stated family, found once and kept: what regret is measured against.

To find it takes up to a minute for each kind of task. For the presets and the default weights it
stands here, and a test searches it anew. For other weights its text is kept in the cache folder,
under a name that depends on all that it depends on: the preset, the weights of the score, how near
wrong answers come on the bundled tasks, and the source of this package. What the workflow is worth
is computed anew each time. A cache that cannot be read or written is no error: the search is made.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import toolgym.rewards
from aflowgym.backends.presets import preset_of
from aflowgym.dsl import parse
from aflowgym.expectation import DEFAULT_REWARDS, Expectation, expected
from aflowgym.expectation.family import FAMILY, NAMED, Family
from aflowgym.expectation.nearness import nearness
from aflowgym.expectation.search import optimum
from aflowgym.tasks.task import Kind
from toolgym import long_work
from toolgym.cache import cache_folder
from toolgym.rewards import RewardConfig
from toolgym.runs.files import object_text, replace_file

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
    """What `aflowgym.optimum` finds, from `FOUND` or the cache where it was found before.

    Args:
        kind: The kind of the tasks.
        preset: The skills of the operators.
        rewards: The weights of the score; None for the defaults.
        family: How far the family goes.

    >>> best_workflow("math", "paper").workflow
    'Programmer'
    """
    weights = RewardConfig.of(rewards)
    text = FOUND.get((preset, kind)) if (family, weights) == (FAMILY, DEFAULT_REWARDS) else None
    if text is None:
        text = _searched(kind, preset, weights, family)
    return Best(text, expected(text, kind, preset, rewards=weights))


def _searched(kind: Kind, preset: str, weights: RewardConfig, family: Family) -> str:
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
