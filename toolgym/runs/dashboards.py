"""Sends the metrics of runs to dashboards: TensorBoard, Weights & Biases, Trackio and others.

    with reported(run, ("tensorboard",)) as run:
        run.log_metrics({"phase": "grpo", "step": 1, "reward": 0.2})     # grpo/reward at step 1

`reported` returns a run that writes its folder and also sends the numbers to the dashboards.
Metrics are logged as `phase/key`, at the steps of the phase. Evaluations are named after their
tasks, such as `unseen_tasks/accuracy`, and logged at the GRPO step after which they were run.
Packages add dashboards through the entry-point group `toolgym.dashboards`; each entry point has the
name of a library.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from typing import Any, Protocol

from toolgym.errors import ConfigurationError
from toolgym.plugins import DASHBOARDS, PluginError, find_plugins
from toolgym.runs.metrics import is_number
from toolgym.runs.run import Run


class Dashboard(Protocol):
    """Protocol of a connection to a dashboard."""

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        """Send the numbers of a step, by key."""
        ...

    def close(self) -> None:
        """Send pending numbers and close the connection."""
        ...


class ReportedRun(Run):
    """A run folder whose numbers are also sent to dashboards."""

    def __init__(self, run: Run, dashboards: Sequence[Dashboard]) -> None:
        super().__init__(run.path, run.config)
        self._dashboards = dashboards
        self._evaluated: set[tuple[str, str]] = set()

    def log_metrics(self, record: Mapping[str, Any]) -> None:
        """Append the numbers of one step to `metrics.jsonl`, and send them."""
        super().log_metrics(record)
        self._show(record["phase"], record["step"], record)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace `summary.json`, and send the evaluations that were added."""
        super().write_summary(summary)
        for each in summary.get("evaluations") or [{**summary, "name": ""}]:
            name = re.sub(r"[^\w.-]+", "_", each["name"]).strip("_") or "evaluation"
            for when in ("before", "after"):
                if each.get(when) and (name, when) not in self._evaluated:
                    self._evaluated.add((name, when))
                    steps = [r["step"] for r in self.metrics("grpo") if when == "after"]
                    self._show(name, max(steps, default=0), each[when])

    def _show(self, phase: str, step: int, values: Mapping[str, Any]) -> None:
        numbers = {k: float(v) for k, v in values.items() if is_number(v) and k != "step"}
        for dashboard in self._dashboards:
            dashboard.log(phase, step, numbers)


@contextmanager
def reported(run: Run, names: Sequence[str]) -> Iterator[Run]:
    """Context manager for a run that sends its numbers to dashboards.

    Args:
        run: The run, which is written by this process.
        names: Names of dashboards. If no names are given, `run` itself is returned.

    Raises:
        ConfigurationError: A dashboard is unknown, its library is missing, or it does not accept
            the run.
    """
    check_services(names)
    with ExitStack() as stack:
        dashboards = []
        for name in dict.fromkeys(names):
            try:
                dashboards.append(find_plugins(DASHBOARDS)[name].load()(run))
            except PluginError as problem:
                raise ConfigurationError(f"{problem} Reinstall it.") from None
            stack.callback(dashboards[-1].close)
        yield ReportedRun(run, dashboards) if dashboards else run


def check_services(names: Sequence[str]) -> None:
    """Check that dashboards can be used.

    Raises:
        ConfigurationError: A dashboard is unknown, or its library is not installed.
    """
    known = find_plugins(DASHBOARDS)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise ConfigurationError(
                f"--report-to must be {' or '.join(known)}, got {name!r}{hint}"
            )
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:  # a plain folder with this name has no origin
            raise ConfigurationError(
                f"--report-to {name} needs the package {name}; run: pip install {name}"
            )
