"""Dashboards beside the run folder, such as TensorBoard, Weights & Biases or Trackio.

The run folder stays the record. `reported` hands out a run that passes on what is written to it, so
whoever logs to a run, the warm-up, each trainer or an evaluation, reports without knowing of it:

    with reported(run, ("tensorboard",)) as run:
        run.log_metrics({"phase": "grpo", "step": 1, "reward": 0.2})     # grpo/reward at step 1

Installed packages bring dashboards by the entry-point group `toolgym.dashboards`: the name is that
of the library, which is imported only when it is asked for. Names of numbers are `phase/key`, with
the phase's own steps; evaluations are named after what they were on, as in `unseen_tasks/key` and
`unseen_tasks_sampled/key`, at the step of training they were made at. A run that is resumed goes on
in the same place; steps that are done again are written again, with the same values.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from typing import Any, Final, Protocol

from toolgym.errors import ConfigurationError
from toolgym.plugins import DASHBOARDS, PluginError, find_plugins
from toolgym.runs.metrics import is_number
from toolgym.runs.run import Run

EVALUATION: Final = "evaluation"
"""Before the figures of a summary that does not name its evaluations."""


class Dashboard(Protocol):
    """Where numbers are shown."""

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        """Show the numbers of a step, by key."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...


class ReportedRun(Run):
    """A run folder whose numbers are shown on dashboards too."""

    def __init__(self, run: Run, dashboards: Sequence[Dashboard]) -> None:
        super().__init__(run.path, run.config)
        self.notes = run.notes
        self._dashboards = dashboards
        self._evaluated: set[tuple[str, str]] = set()

    def log_metrics(self, record: Mapping[str, Any]) -> None:
        """Append the numbers of one step to `metrics.jsonl`, then show them."""
        super().log_metrics(record)
        numbers = {key: value for key, value in record.items() if key != "step"}
        self._show(record["phase"], record["step"], numbers)

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Replace `summary.json`, then show the evaluations that are new in it."""
        super().write_summary(summary)
        for each in summary.get("evaluations") or [{**summary, "name": EVALUATION}]:
            for when in ("before", "after"):
                figures = each.get(when)
                if isinstance(figures, Mapping) and (each["name"], when) not in self._evaluated:
                    self._evaluated.add((each["name"], when))
                    self._show_figures(_phase_name(each["name"]), when, figures)

    def _show_figures(self, name: str, when: str, figures: Mapping[str, Any]) -> None:
        steps = [0] if when == "before" else [r["step"] for r in self.metrics("grpo")]
        numbers = {key: value for key, value in figures.items() if key != "episodes"}
        self._show(name, max(steps, default=0), numbers)

    def _show(self, phase: str, step: int, values: Mapping[str, Any]) -> None:
        numbers = {key: float(value) for key, value in values.items() if is_number(value)}
        for dashboard in self._dashboards:
            dashboard.log(phase, step, numbers)


def _phase_name(evaluation: str) -> str:
    """The name of an evaluation before those of its figures: `unseen tasks` is `unseen_tasks`."""
    return re.sub(r"[^\w.-]+", "_", evaluation).strip("_") or EVALUATION


@contextmanager
def reported(run: Run, names: Sequence[str]) -> Iterator[Run]:
    """A run that passes its numbers on, for as long as the context lasts.

    Args:
        run: The folder; one process writes to it, and only that one may report.
        names: Of dashboards; without any, the run is handed back as it is.

    Raises:
        ConfigurationError: There is no such service, its library is missing, or it refuses the run.
    """
    check_services(names)
    if not names:
        yield run
        return
    with ExitStack() as stack:
        dashboards = []
        for name in dict.fromkeys(names):
            dashboards.append(_open(name, run))
            stack.callback(dashboards[-1].close)
        yield ReportedRun(run, dashboards)


def _open(name: str, run: Run) -> Dashboard:
    try:
        dashboard: Dashboard = find_plugins(DASHBOARDS)[name].load()(run)
    except PluginError as problem:
        raise ConfigurationError(f"{problem} Install it again, or leave --report-to out.") from None
    return dashboard


def check_services(names: Sequence[str]) -> None:
    """Say what is missing, before hours are spent.

    Raises:
        ConfigurationError: There is no such service, or its library is not installed.
    """
    known = find_plugins(DASHBOARDS)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            choices = " or ".join(known) or "the name of a dashboard, and none is installed"
            raise ConfigurationError(f"--report-to must be {choices}, got {name!r}{hint}")
        if not _is_installed(name):
            raise ConfigurationError(
                f"--report-to {name} needs the package {name}, not installed here; run: pip install"
                f" {name}. Without it the run folder and its report have the same numbers."
            )


def _is_installed(library: str) -> bool:
    spec = importlib.util.find_spec(library)
    return spec is not None and spec.origin is not None  # a mere folder of that name is none
