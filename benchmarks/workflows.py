"""Benchmarks parsing, running and evaluating workflows, relative to lower bounds.

The compared sides take turns in one process, and medians over rounds are compared, so the ratios
hardly depend on the machine. Work on one core is timed in processor time of this process. Each
episode has its own seed.

    python benchmarks/workflows.py [--episodes 2000] [--rounds 7] [--kind math]
        [--only language,episodes,each,worth]

The mix has the ten most frequent workflows of a training run with 326 rollouts, with their counts.
An episode is `reset`, `run_workflow` and `answer`. Its lower bounds are the interpreter with the
verifier, and the random draws alone. The lower bound of the parser is its tokenizer.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import aflowgym
from aflowgym.backends import PRESETS, simulated
from aflowgym.dsl.nodes import Node
from aflowgym.dsl.tokens import tokenize
from aflowgym.envs.base import WorkflowEnv
from aflowgym.envs.players import TYPICAL
from aflowgym.execution.interpreter import grade
from aflowgym.operators.context import hash_of, unit
from aflowgym.tasks.task import KINDS, Kind
from toolgym import registration

ENV_ID = "aflowgym/Compose-v0"
MIX = {
    "Custom -> Programmer -> Review ? Revise : done": 115,
    "Custom -> Programmer -> Review -> Revise": 69,
    "Programmer": 47,
    "Custom -> Programmer": 21,
    "Custom -> Programmer -> Review": 18,
    "Programmer -> Review ? Revise : done": 13,
    "Programmer -> Review -> Revise": 10,
    "Custom": 8,
    "Programmer -> Review": 6,
    "Custom -> Review ? Revise : done": 5,
}
"""The ten most frequent workflows with their counts; all parse without diagnostics."""
BESIDE = (
    "AnswerGenerate -> Format",
    "CustomCodeGenerate -> Test * 3",
    "AnswerGenerate -> (Review -> Revise) * 3 -> Format",
    "[Custom * 3] -> ScEnsemble",
    "[Programmer * 5] -> ScEnsemble",
    "[AnswerGenerate * 3] -> MdEnsemble",
)
"""Other workflows that are timed: those of experts and those with lists."""
LEAST_PARSES, LEAST_EPISODES = 20_000, 5_000
ORACLE = Path(__file__).parent.parent / "tests" / "aflowgym" / "dsl" / "test_oracle.py"
ANSWER = '<tool_call>\n{"name": "answer", "arguments": {}}\n</tool_call>'
_fresh = count(1_000_000)


def row(name: str, value: float, unit: str, note: str = "", holds: bool | None = None) -> None:
    """Print one line of the table."""
    verdict = {True: "yes", False: "NO", None: ""}[holds]
    shown = f"{value:,.0f}" if value >= 1000 else f"{value:,.2f}"
    print(f"{name:<52} {shown:>10} {unit:<3} {note:<44} {verdict}", flush=True)


def in_turn(sides: Mapping[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Return the median rate of each side; each function returns how many items it processed."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, work in sides.items():
            gc.collect()
            start = time.process_time()
            done = work()
            if turn:  # the first round is a warm-up
                rates[name].append(done / (time.process_time() - start))
    return {name: statistics.median(found) for name, found in rates.items()}


# The language ------------------------------------------------------------------------------------


def time_language(rounds: int) -> None:
    """Parse typical workflows; compare with the tokenizer and the second grammar of the tests."""
    texts = [*MIX, *TYPICAL] * 20

    def each(read: Callable[[str], object]) -> Callable[[], int]:
        def work() -> int:
            for text in texts:
                read(text)
            return len(texts)

        return work

    sides = {
        "tokenizer": each(tokenize),
        "parse": each(aflowgym.parse),
        "parse, one kind": each(partial(aflowgym.parse, kind="code")),
    }
    oracle = _oracle()
    if oracle is not None:
        sides["lark"] = each(lambda text: oracle.node(oracle.grammar().parse(text)))
    rates = in_turn(sides, rounds)
    row("tokenizer alone", rates["tokenizer"], "/s", f"{len(texts) // 20} typical workflows")
    for name in ("parse", "parse, one kind"):
        rate = rates[name]
        row(f"{name} and check", rate, "/s", f"at least {LEAST_PARSES:,}", rate >= LEAST_PARSES)
    row("  of the tokenizer", 100 * rates["parse"] / rates["tokenizer"], "%")
    if oracle is None:
        print("skipped: lark and pytest are not installed (pip install -e '.[dev]')")
    else:
        row("the grammar of the tests in lark, without types", rates["lark"], "/s")
        row("  speed of parse relative to it", rates["parse"] / rates["lark"], "x")


def _oracle() -> ModuleType | None:
    """Return the second grammar of the tests; None if it cannot be loaded."""
    installed = all(importlib.util.find_spec(name) for name in ("lark", "pytest", "hypothesis"))
    spec = importlib.util.spec_from_file_location("oracle", ORACLE) if installed else None
    if spec is None or spec.loader is None or not ORACLE.exists():
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Episodes ----------------------------------------------------------------------------------------


@dataclass
class Stage:
    """An environment, and the same execution without it."""

    kind: Kind | None
    env: WorkflowEnv = field(init=False)

    def __post_init__(self) -> None:
        self.env = registration.make(ENV_ID, kind=self.kind)  # type: ignore[assignment]

    def episodes(self, texts: Sequence[str]) -> int:
        """Play an episode with each text: reset, run, answer."""
        env = self.env
        for text in texts:
            env.reset(seed=next(_fresh))
            env.step(text)
            env.step(ANSWER)
        return len(texts)

    def runs(self, trees: Sequence[Node]) -> int:
        """Run each workflow with the task and the draws of an episode: interpreter and verifier."""
        env = self.env
        for tree in trees:
            seed = next(_fresh)
            task = env.tasks.draw(seed)
            result = aflowgym.execute(tree, task, env.backend, seed=seed)
            grade(task, result.solution, env.sandbox)
        return len(trees)

    def keys(self, trees: Sequence[Node]) -> list[str]:
        """Return the keys of all draws of runs."""
        found: list[str] = []

        def noted(key: str) -> int:
            found.append(key)
            return hash_of(key)

        with patch.object(simulated, "hash_of", noted):
            self.runs(trees)
        return found


def call(dsl: str) -> str:
    """Return the call that runs a workflow, as a model writes it."""
    made = json.dumps({"name": "run_workflow", "arguments": {"dsl": dsl}})
    return f"<tool_call>\n{made}\n</tool_call>"


def read(dsl: str) -> Node:
    """Return the tree of a workflow."""
    parsed = aflowgym.parse(dsl)
    if parsed.workflow is None:
        raise ValueError(f"{dsl!r} is not a workflow: {parsed.errors[0]}")
    return parsed.workflow


def mixed(episodes: int) -> list[str]:
    """Return about `episodes` workflows in the proportions of `MIX`."""
    total = sum(MIX.values())
    spread = sorted(
        ((place + 0.5) / share, dsl)
        for dsl, often in MIX.items()
        for share in [max(round(episodes * often / total), 1)]
        for place in range(share)
    )
    return [dsl for _, dsl in spread]


def time_episodes(kind: Kind | None, episodes: int, rounds: int) -> None:
    """Time episodes through `env.step`, the interpreter, and the draws alone."""
    stage = Stage(kind)
    texts = mixed(episodes)
    trees = [read(dsl) for dsl in texts]
    keys = stage.keys(trees)
    actions = [call(dsl) for dsl in texts]

    def draws() -> int:
        for key in keys:
            unit(hash_of(key))
        return len(texts)

    sides: dict[str, Callable[[], int]] = {
        "draws": draws,
        "runs": lambda: stage.runs(trees),
        "episodes": lambda: stage.episodes(actions),
    }
    rates = in_turn(sides, rounds)
    mix = f"the mix, {kind or 'all kinds'}"
    row(f"{mix}: draws alone", rates["draws"], "/s", f"{len(keys) / len(texts):.1f} an episode")
    row(f"{mix}: interpreter and verifier alone", rates["runs"], "/s")
    rate = rates["episodes"]
    row(f"{mix}: episodes", rate, "/s", f"at least {LEAST_EPISODES:,}", rate >= LEAST_EPISODES)
    row("  of the interpreter and verifier alone", 100 * rate / rates["runs"], "%")


def time_each(kind: Kind | None, episodes: int, rounds: int) -> None:
    """Time episodes of each workflow, and its runs without the environment."""
    for dsl in (*MIX, *BESIDE):
        of_kind: Kind | None = "code" if "Test" in dsl else kind
        stage = Stage(of_kind)
        sides = {
            "runs": partial(stage.runs, [read(dsl)] * (episodes // 4)),
            "episodes": partial(stage.episodes, [call(dsl)] * (episodes // 4)),
        }
        rates = in_turn(sides, rounds)
        alone = f"without the environment {rates['runs']:,.0f} /s"
        row(f"  {dsl}", rates["episodes"], "/s", alone, rates["episodes"] >= LEAST_EPISODES)


# The worth ---------------------------------------------------------------------------------------


def time_worth() -> None:
    """Time `aflowgym.worth` of the reference workflows, per preset and kind."""
    for preset, kind in itertools.product(PRESETS, KINDS):
        for name, dsl in aflowgym.REFERENCE_WORKFLOWS[kind].items():
            begun = time.process_time()
            worth = aflowgym.worth(dsl, kind=kind, preset=preset)
            taken = time.process_time() - begun
            row(f"{worth.runs} runs for {kind}, {preset}: {name}", taken, "s")
            print(f"  success {worth.success}, score {worth.score}: {dsl}")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--episodes", type=int, default=2000, help="episodes per round (default: 2000)"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kind", choices=KINDS, help="kind of tasks (default: all)")
    parser.add_argument("--only", default="language,episodes,each,worth")
    chosen = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "language": lambda: time_language(chosen.rounds),
        "episodes": lambda: time_episodes(chosen.kind, chosen.episodes, chosen.rounds),
        "each": lambda: time_each(chosen.kind, chosen.episodes, chosen.rounds),
        "worth": time_worth,
    }
    for name, measure in parts.items():
        if name in chosen.only.split(","):
            measure()


if __name__ == "__main__":
    main()
