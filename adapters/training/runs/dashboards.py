"""Dashboards beside the run folder: TensorBoard, Weights & Biases, Trackio.

The run folder stays the record. `reported` hands out a run that passes on what is written to it, so
whoever logs to a run, the warm-up and each trainer, reports without knowing of it:

    with reported(run, ("tensorboard",)) as run:
        run.log_metrics({"phase": "grpo", "step": 1, "reward": 0.2})     # grpo/reward at step 1

Each library is used as its makers mean it to be used, and imported only when it is asked for. Names
are `phase/key`, with the phase's own steps; evaluations are named after what they were on, as in
`unseen_tasks/key` and `unseen_tasks_sampled/key`, at the step of training they were made at. A run
that is resumed goes on in the same place; steps that are done again are written again, with the
same values.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final, Protocol

from toolgym.errors import ConfigurationError
from toolgym.runs.files import object_text, read_object, replace_file
from toolgym.runs.metrics import is_number
from toolgym.runs.run import Run

PROJECT: Final = "toolgym"
EVALUATION: Final = "evaluation"
"""Before the figures of a summary that does not name its evaluations."""
_PLACE: Final = "dashboards.json"


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
                    self._show_figures(
                        each["name"].replace(",", "").replace(" ", "_"), when, figures
                    )

    def _show_figures(self, name: str, when: str, figures: Mapping[str, Any]) -> None:
        steps = [0] if when == "before" else [r["step"] for r in self.metrics("grpo")]
        numbers = {key: value for key, value in figures.items() if key != "episodes"}
        self._show(name, max(steps, default=0), numbers)

    def _show(self, phase: str, step: int, values: Mapping[str, Any]) -> None:
        numbers = {key: float(value) for key, value in values.items() if is_number(value)}
        for dashboard in self._dashboards:
            dashboard.log(phase, step, numbers)


@contextmanager
def reported(run: Run, names: Sequence[str]) -> Iterator[Run]:
    """A run that passes its numbers on, for as long as the context lasts.

    Args:
        run: The folder; one process writes to it, and only that one may report.
        names: Of `SERVICES`; without any, the run is handed back as it is.

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
            dashboards.append(_OPENED[name](run))
            stack.callback(dashboards[-1].close)
        yield ReportedRun(run, dashboards)


def check_services(names: Sequence[str]) -> None:
    """Say what is missing, before hours are spent.

    Raises:
        ConfigurationError: There is no such service, or its library is not installed.
    """
    for name in names:
        if name not in SERVICES:
            raise ConfigurationError(f"--report-to must be {' or '.join(SERVICES)}, got {name!r}.")
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:  # a mere folder of that name is not the library
            raise ConfigurationError(
                f"--report-to {name} needs the package {name}, not installed here; run: pip install"
                f" {name}. Without it the run folder and its report have the same numbers."
            )


class _TensorBoard:
    """Event files in the folder `tensorboard` of the run."""

    def __init__(self, run: Run) -> None:
        library: Any = importlib.import_module("torch.utils.tensorboard")
        self._writer = library.SummaryWriter(log_dir=str(run.path / "tensorboard"))
        self._writer.add_text("config", f"```json\n{json.dumps(run.config, indent=2)}\n```")

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        for key, value in numbers.items():
            self._writer.add_scalar(f"{phase}/{key}", value, step)
        self._writer.flush()  # a run that is killed has shown all it logged

    def close(self) -> None:
        self._writer.close()


class _WandB:
    """A run of the project "toolgym", or of `WANDB_PROJECT`."""

    def __init__(self, run: Run) -> None:
        library: Any = importlib.import_module("wandb")
        try:
            self._run = library.init(
                project=os.environ.get("WANDB_PROJECT", PROJECT),
                name=run.name,
                id=_unique_name(run),
                resume="allow",
                dir=str(run.path),
                config=run.config,
            )
        except library.Error as problem:
            raise ConfigurationError(
                f"wandb refuses the run: {problem}. Run `wandb login`, or set WANDB_MODE=offline."
            ) from problem
        self._phases: set[str] = set()

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        if phase not in self._phases:  # each counts its own steps
            self._phases.add(phase)
            self._run.define_metric(f"{phase}/step")
            self._run.define_metric(f"{phase}/*", step_metric=f"{phase}/step")
        self._run.log(_named(phase, {"step": step, **numbers}))

    def close(self) -> None:
        self._run.finish()


class _Trackio:
    """A run of the project "toolgym" on this machine, or wherever Trackio is told to send it."""

    def __init__(self, run: Run) -> None:
        library: Any = importlib.import_module("trackio")
        name = _unique_name(run)
        with redirect_stdout(sys.stderr):  # it says where to look, and stdout is for results
            self._run = library.init(
                project=PROJECT, name=name, config=run.config, resume="allow", embed=False
            )

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(_named(phase, numbers), step=step)

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self._run.finish()


_OPENED: Final[Mapping[str, Callable[[Run], Dashboard]]] = {
    "tensorboard": _TensorBoard,
    "wandb": _WandB,
    "trackio": _Trackio,
}
SERVICES: Final = tuple(_OPENED)
"""What `--report-to` may name."""


def _named(phase: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {f"{phase}/{key}": value for key, value in numbers.items()}


def _unique_name(run: Run) -> str:
    """The run's name and something of its own, kept in its folder: names are used again."""
    file: Path = run.path / _PLACE
    if not file.is_file():
        replace_file(file, [object_text({"name": f"{run.name}-{uuid.uuid4().hex[:8]}"})])
    return str(read_object(file)["name"])
