"""Generate the bundled workflow tasks: word problems, small functions, questions that join facts.

Usage: `python tools/generate_workflow_tasks.py [FOLDER]`. It writes `train.jsonl`, `dev.jsonl`,
`test.jsonl` and `facts.json`, by default into `data/workflows`. One seed for each kind makes
everything, so that running it again gives the same bytes, which a test proves. A split never cuts
through an item: a family of word problems, a kind of function, a valley of invented facts.

What could not be judged is never written: the gold must be right and the distractors wrong by the
package's own verifiers, the solution must pass all tests, and no mistaken program may.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import workflow_code
import workflow_facts
import workflow_math

from aflowgym.answers import judge_math, judge_qa

ROOT = Path(__file__).resolve().parent.parent
SEEDS = {"math": 1202, "code": 1843, "qa": 1876, "split": 1729}
PER_MATH_FAMILY, VALLEYS, PER_VALLEY, PUBLIC = 6, 12, 10, 2
SHARES = {"train": 0.6, "dev": 0.2, "test": 0.2}

Entry = dict[str, Any]


def math_tasks() -> list[Entry]:
    """Word problems: six of each family, no two alike."""
    entries: list[Entry] = []
    for family in workflow_math.FAMILIES:
        rng, seen = random.Random(f"{SEEDS['math']}-{family.__name__}"), set()
        while len(seen) < PER_MATH_FAMILY:
            problem = family(rng)
            if problem.question in seen or len(problem.distractors) < 2 or not _sound(problem):
                continue
            seen.add(problem.question)
            entries.append({
                "id": f"math-{family.__name__.replace('_', '-')}-{len(seen)}",
                "kind": "math", "item": family.__name__, "question": problem.question,
                "gold": problem.gold, "solution": problem.solution,
                "distractors": list(problem.distractors),
            })  # fmt: skip
    return entries


def _sound(problem: workflow_math.Problem) -> bool:
    said = [judge_math(problem.gold, text, problem.question) for text in problem.distractors]
    right = judge_math(problem.gold, problem.gold, problem.question)
    return right.correct is True and all(verdict.correct is False for verdict in said)


def code_tasks() -> list[Entry]:
    """Small functions: one task for each parameter of a family."""
    entries: list[Entry] = []
    bad: list[str] = []
    for family in workflow_code.FAMILIES:
        for place, parameter in enumerate(family.parameters):
            rng = random.Random(f"{SEEDS['code']}-{family.name}-{parameter}")
            solution = workflow_code.fill(family.solution, parameter)
            inputs = list({repr(args): args for args in family.inputs(rng)}.values())
            calls = [", ".join(map(repr, args)) for args in inputs]
            values = run(solution, family.entry_point, calls)
            mistakes = [workflow_code.fill(text, parameter) for text in family.mistakes]
            wrong = [text for text in mistakes if run(text, family.entry_point, calls) != values]
            if len(wrong) < len(mistakes):
                bad.append(f"{family.name} {parameter}: {set(mistakes) - set(wrong)}")
            wording = family.wordings[place % len(family.wordings)]
            entries.append({
                "id": f"code-{family.name.replace('_', '-')}-{place + 1}",
                "kind": "code", "item": family.name,
                "question": workflow_code.fill(wording, parameter),
                "entry_point": family.entry_point,
                "tests": [
                    f"assert {family.entry_point}({call}) == {value}"
                    for call, value in zip(calls, values, strict=True)
                ],
                "public_tests": PUBLIC, "solution": solution, "distractors": wrong,
            })  # fmt: skip
    if bad:
        raise SystemExit("these mistakes pass all their tests:\n" + "\n".join(bad))
    return entries


def run(source: str, entry_point: str, calls: list[str]) -> list[str]:
    """What our own program returns for each call, as `repr`; the name of what it raises."""
    values: list[str] = []
    for call in calls:
        scope: dict[str, Any] = {}
        exec(source, scope)
        try:
            values.append(repr(eval(f"{entry_point}({call})", scope)))
        except Exception as problem:  # noqa: BLE001 - a mistaken program may raise anything
            values.append(type(problem).__name__)
    return values


def qa_tasks(valleys: list[workflow_facts.Valley]) -> list[Entry]:
    """Questions over the facts: ten of each valley, each of another shape or about another."""
    entries: list[Entry] = []
    shapes = len(workflow_facts.SHAPES) + 1
    for number, valley in enumerate(valleys):
        rng, seen = random.Random(f"{SEEDS['qa']}-{valley.name}"), set()
        while len(seen) < PER_VALLEY:
            shape = (number * PER_VALLEY + len(seen)) % shapes
            found = workflow_facts.make_question(rng, valley, shape)
            golds = [found.gold, *found.aliases]
            wrong = [text for text in found.distractors if not judge_qa(golds, text).correct]
            if found.text in seen or not wrong:
                continue
            seen.add(found.text)
            entries.append({
                "id": f"qa-{valley.name}-{len(seen)}", "kind": "qa", "item": valley.name,
                "question": found.text, "gold": found.gold, "aliases": list(found.aliases),
                "hops": len(found.chain), "chain": [list(fact) for fact in found.chain],
                "context": workflow_facts.passages_of(rng, valley, found),
                "distractors": wrong,
            })  # fmt: skip
    return entries


def split(entries: list[Entry]) -> dict[str, list[Entry]]:
    """The entries by split: of each kind, items are dealt out by a fixed shuffle."""
    parts: dict[str, list[Entry]] = {name: [] for name in SHARES}
    for kind in ("math", "code", "qa"):
        items = sorted({entry["item"] for entry in entries if entry["kind"] == kind})
        random.Random(f"{SEEDS['split']}-{kind}").shuffle(items)
        start, total = 0, 0.0
        for name, share in SHARES.items():
            total += share
            end = round(total * len(items))
            chosen = set(items[start:end])
            start = end
            own = [entry for entry in entries if entry["kind"] == kind and entry["item"] in chosen]
            parts[name] += own
    return parts


def main(folder: Path) -> None:
    """Write everything into a folder."""
    valleys = workflow_facts.make_valleys(random.Random(f"{SEEDS['qa']}-valleys"), VALLEYS)
    folder.mkdir(parents=True, exist_ok=True)
    for name, entries in split([*math_tasks(), *code_tasks(), *qa_tasks(valleys)]).items():
        lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    lines = [
        f"{json.dumps(valley.name)}: [\n"
        + ",\n".join("  " + json.dumps(fact, ensure_ascii=False) for fact in valley.facts)
        + "\n]"
        for valley in valleys
    ]
    (folder / "facts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "data" / "workflows")
