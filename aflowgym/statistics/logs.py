"""Reads the workflows in a log that another trainer wrote.

Two kinds of lines are outputs of the policy; all other lines are ignored.

- A line of a training log that describes one output, such as `DSL质量: fallback=False, ops=2,
  chain=True, DSL=Custom -> Programmer`. A trainer of this family replaces an output that it cannot
  read by a default workflow and writes `fallback=True`. Lines that begin with `Step 4/96` or
  `Step 4: 准确率` mark a step, those that begin with `更新策略` or `触发梯度更新` an update (signs
  such as `📍` may precede), and `跳过...更新` states that an update was skipped.
- A line of JSON: a workflow as a string, or an object with a workflow under `workflow` or `dsl`, and
  optionally `step`, `phase`, `correct`, and `score` or `reward`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from aflowgym.statistics.workflows import FALLBACK

_OUTPUT: Final = re.compile(r"fallback=(True|False), ops=\d{1,9}, chain=(?:True|False), DSL=(.+)")
# Texts of models begin lines with "### Step 1: ...", too; these are no steps of the training.
_STEP: Final = re.compile(r"[^\w#*]{0,20}Step (\d{1,9})(?:/\d{1,9}\s*$|: 准确率)")
_UPDATE: Final = re.compile(r"\W{0,20}(?:更新策略|触发梯度更新)")
_SKIPPED: Final = re.compile(r".{0,40}跳过.{0,20}更新")


def read_log(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the outputs in a log as rollouts with one call of `run_workflow` each.

    Args:
        lines: The lines of the log.

    Returns:
        Dicts with the keys `turns`, `step` (None if unknown), `phase` ("" if unknown), `updates`
        (number of updates before the output), `correct` and `score` (None if unknown).
    """
    step, updates, is_pending = None, 0, False
    for line in lines:
        if match := _OUTPUT.search(line):
            updates, is_pending = updates + is_pending, False
            yield _rollout(match[2], match[1] == "True", {}, step, updates)
        elif match := _STEP.match(line):
            step = int(match[1])
        elif _UPDATE.match(line):
            is_pending = True
        elif _SKIPPED.match(line):
            is_pending = False
        elif line.lstrip()[:1] in ('"', "{"):
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            entry = entry if isinstance(entry, dict) else {"workflow": entry}
            text = entry.get("workflow", entry.get("dsl"))
            if isinstance(text, str):
                number = _number(entry.get("step"))
                yield _rollout(text, False, entry, None if number is None else int(number), 0)


def _rollout(
    text: str, is_fallback: bool, entry: Mapping[str, Any], step: int | None, updates: int
) -> dict[str, Any]:
    correct, phase = _number(entry.get("correct")), entry.get("phase")
    return {
        "phase": phase[:40] if isinstance(phase, str) else "",
        "step": step,
        "updates": updates,
        "turns": [
            {
                "calls": [{"name": "run_workflow", "arguments": {"dsl": text}}],
                "observation": f"error[{FALLBACK}]" if is_fallback else "",
            }
        ],
        "correct": None if correct is None else correct > 0,
        "score": _number(entry.get("score", entry.get("reward"))),
    }


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and abs(value) < 1e12 else None
