"""Read workflows from the training log of another trainer.

Two kinds of lines contain outputs of the policy. All other lines are ignored.

* A line that describes one output in a training log, such as `DSL质量: fallback=False, ops=2,
  chain=True, DSL=Custom -> Programmer`. If such a trainer cannot parse an output, it uses a default
  workflow and logs `fallback=True`. Lines that begin with `Step 4/96` or `Step 4: 准确率` start a
  new step. Lines that begin with `更新策略` or `触发梯度更新` report an update. Symbols such as
  `📍` can precede the text of a line. `跳过...更新` means that an update was skipped.
* A line of JSON: a workflow as a string, or an object with a workflow under `workflow` or `dsl`,
  and optionally `step`, `phase`, `correct`, and `score` or `reward`. In a training log, lines of
  JSON are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

_OUTPUT: Final = re.compile(r"fallback=(True|False), ops=\d{1,9}, chain=(?:True|False), DSL=(.+)")
# Outputs of models may also have lines with "### Step 1: ...". These are not training steps.
_STEP: Final = re.compile(r"[^\w#*]{0,20}Step (\d{1,9})(?:/\d{1,9}\s*$|: 准确率)")
_UPDATE: Final = re.compile(r"\W{0,20}(?:更新策略|触发梯度更新)")
_SKIPPED: Final = re.compile(r".{0,40}跳过.{0,20}更新")

WINDOW: Final = 64
"""Number of outputs per window if a log marks neither steps nor updates."""


def read_log(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the outputs of the policy in a log.

    Args:
        lines: The lines of the log.

    Returns:
        Dicts with the keys `workflow`, `fallback`, `step`, `phase` ("" if unknown), `updates`
        (number of updates before the output), `correct` and `score` (None if unknown). If no line
        starts a step, `step` is a string that contains the last update, or else the window of
        `WINDOW` outputs.
    """
    step: int | None = None
    outputs = updates = 0
    is_pending = is_training = False
    for line in lines:
        entry: dict[str, Any] = {}
        if match := _OUTPUT.search(line):
            updates, is_pending, is_training = updates + is_pending, False, True
            entry = {"workflow": match[2], "step": step, "fallback": match[1] == "True"}
        elif match := _STEP.match(line):
            step = int(match[1])
        elif _UPDATE.match(line):
            is_pending = True
        elif _SKIPPED.match(line):
            is_pending = False
        elif not is_training and line.lstrip()[:1] in ('"', "{"):
            try:
                read = json.loads(line)
            except (ValueError, RecursionError):
                continue
            entry = read if isinstance(read, dict) else {"workflow": read}
        text = entry.get("workflow", entry.get("dsl"))
        if isinstance(text, str):
            numbers = {
                name: value
                for name, value in entry.items()
                if isinstance(value, int | float) and abs(value) < 1e12
            }
            first = outputs - outputs % WINDOW
            window = f"update {updates}" if updates else f"outputs {first + 1}-{first + WINDOW}"
            outputs += 1
            yield {
                "workflow": text,
                "fallback": entry.get("fallback") is True,
                "phase": str(entry.get("phase", ""))[:40],
                "step": int(numbers["step"]) if "step" in numbers else window,
                "updates": updates,
                "correct": numbers.get("correct"),
                "score": numbers.get("score", numbers.get("reward")),
            }
