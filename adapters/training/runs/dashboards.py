"""Dashboards for `--report-to`: TensorBoard, Weights & Biases and Trackio.

The dashboards are plug-ins of `toolgym.runs.dashboards`, registered in the entry-point group
`toolgym.dashboards`. Each library is imported when its dashboard is opened.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import uuid
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

from toolgym.errors import ConfigurationError
from toolgym.runs.files import object_text, read_object, replace_file
from toolgym.runs.run import Run

PROJECT: Final = "toolgym"
_NAMES: Final = "dashboards.json"


class TensorBoard:
    """A TensorBoard dashboard, whose event files are in the folder `tensorboard` of the run."""

    def __init__(self, run: Run) -> None:
        try:
            library: Any = importlib.import_module("torch.utils.tensorboard")
        except ImportError as problem:
            raise ConfigurationError(
                "--report-to tensorboard needs PyTorch and tensorboard, which are not installed."
                " Run: pip install 'toolgym[train]'"
            ) from problem
        self._writer = library.SummaryWriter(log_dir=str(run.path / "tensorboard"))
        self._writer.add_text("config", f"```json\n{json.dumps(run.config, indent=2)}\n```")

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        """Send the metrics of a step."""
        for name, value in _named(phase, numbers).items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()  # flushed at every step, so that a killed run has sent everything

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()


class WandB:
    """A Weights & Biases run in the project "toolgym", or in the one that `WANDB_PROJECT` names."""

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
                f"wandb cannot start the run: {problem}. Run `wandb login`, or set"
                " WANDB_MODE=offline."
            ) from problem
        self._phases: set[str] = set()

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        """Send the metrics of a step."""
        if phase not in self._phases:  # each phase counts its own steps
            self._phases.add(phase)
            self._run.define_metric(f"{phase}/step")
            self._run.define_metric(f"{phase}/*", step_metric=f"{phase}/step")
        self._run.log(_named(phase, {"step": step, **numbers}))

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()


class Trackio:
    """A Trackio run in the project "toolgym".

    Trackio stores the run on this machine or sends it to the configured location.
    """

    def __init__(self, run: Run) -> None:
        library: Any = importlib.import_module("trackio")
        with redirect_stdout(sys.stderr):  # Trackio prints where to look, but stdout is for results
            self._run = library.init(
                project=PROJECT,
                name=_unique_name(run),
                config=run.config,
                resume="allow",
                embed=False,
            )

    def log(self, phase: str, step: int, numbers: Mapping[str, float]) -> None:
        """Send the metrics of a step."""
        self._run.log(_named(phase, numbers), step=step)

    def close(self) -> None:
        """Send the remaining metrics."""
        with redirect_stdout(sys.stderr):
            self._run.finish()


def _named(phase: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {f"{phase}/{key}": value for key, value in numbers.items()}


def _unique_name(run: Run) -> str:
    """Return the name of the run with a random suffix, which is kept in the run folder.

    The name of a run may be reused, so the suffix makes it unique.
    """
    file: Path = run.path / _NAMES
    if not file.is_file():
        replace_file(file, [object_text({"name": f"{run.name}-{uuid.uuid4().hex[:8]}"})])
    return str(read_object(file)["name"])
