"""The detectors of sglang, asked through a process of the interpreter that has them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.call_readers.comparison import Row, compare
from benchmarks.call_readers.shapes import DETECTORS, SHAPES
from benchmarks.call_readers.written import SCHEMAS, texts

VARIABLE = "TOOLGYM_SGLANG_PYTHON"
NO_SGLANG = f"{VARIABLE} is not set: it names a Python interpreter that has the detectors of sglang"


def rows(python: str, count: int) -> Iterator[Row]:
    """`count` texts of each format beside each of its detectors."""
    with Detectors(python, SCHEMAS) as detectors:
        for shape in SHAPES:
            written = list(texts(shape, count))
            for entry in DETECTORS.get(shape.name, ()):
                reader = partial(detectors.read, entry.name, prompt=entry.prompt)
                yield compare(shape, f"sglang {entry.name}", reader, written)


class Detectors:
    """What the detectors read; each answer is kept.

    Args:
        python: The interpreter; see `VARIABLE`.
        tools: OpenAI function schemas.
    """

    def __init__(self, python: str, tools: list[dict[str, Any]]) -> None:
        worker = Path(__file__).with_name("worker.py")
        self._tools = tools
        self._answers: dict[tuple[str, str], list[Any]] = {}
        self._process = subprocess.Popen(
            [python, str(worker)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": "", "PYTHONIOENCODING": "utf-8"},
        )
        self.names: list[str] = json.loads(self._line())

    def read(self, detector: str, text: str, prompt: str = "") -> list[tuple[str, Any]]:
        """The calls that a detector finds in a text behind a prompt; none where it raises."""
        text = prompt + text
        key = detector, text
        if key not in self._answers:
            assert self._process.stdin is not None  # noqa: S101
            asked = {"detector": detector, "text": text, "tools": self._tools}
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            self._answers[key] = json.loads(self._line())["calls"]
        return [(name, arguments) for name, arguments in self._answers[key]]

    def _line(self) -> str:
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The process of {VARIABLE} ended; run it by hand to see why.")
        return line

    def __enter__(self) -> Detectors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()
