"""Units of work: one cell of an experiment with one seed, done once and kept.

Each leaves a file of its own, `OUT/units/EXPERIMENT/CELL/SEED.json`, written in one piece. It holds
a key made of the config and of the code that it depends on, and is done again when that differs.
So a run can be ended at any time and taken up again, by any number of processes and in any order.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from adapters.lab.code_hash import code_hash
from adapters.lab.experiment import Experiment, Scale
from toolgym.errors import ConfigurationError
from toolgym.runs.files import object_text, plain, read_object, replace_file

STARTS: Final = "starts"
FIRST_SEED: Final = 100
"""Seeds before it are for trying things out: verdicts are over seeds that nobody has looked at."""
_NAME: Final = re.compile(r"[\w.=+-]+")


@dataclass(frozen=True)
class Unit:
    """One cell with one seed.

    Attributes:
        module: Where the function stands that does it.
        function: Its name.
        key: Of its config and code.
        seconds: Of a core that it should take.
    """

    experiment: str
    module: str
    function: str
    cell: str
    seed: int
    config: Mapping[str, Any]
    key: str
    seconds: float

    def file(self, out: Path) -> Path:
        """The file of its record."""
        return out / "units" / self.experiment / self.cell / f"{self.seed}.json"


def units_of(experiment: Experiment, scale: Scale, seeds: int | None = None) -> list[Unit]:
    """The units of an experiment, seed by seed, since cells of one seed share their start.

    Args:
        seeds: How many, from `FIRST_SEED` on; None: as many as it has at that scale.

    Raises:
        ConfigurationError: A cell has a name that no folder can have.
    """
    module, function = experiment.run.__module__, experiment.run.__name__
    code = code_hash(experiment.run, work)
    cells = experiment.cells(scale)
    for cell in cells:
        if not _NAME.fullmatch(cell):
            raise ConfigurationError(f"a cell of {experiment.name} is called {cell!r}: rename it.")
    count = experiment.seeds[scale] if seeds is None else seeds
    keys = {cell: _key(code, config) for cell, config in cells.items()}
    seconds = {cell: experiment.seconds(config) for cell, config in cells.items()}
    return [
        Unit(experiment.name, module, function, cell, seed, config, keys[cell], seconds[cell])
        for seed in range(FIRST_SEED, FIRST_SEED + count)
        for cell, config in cells.items()
    ]


def _key(code: str, config: Mapping[str, Any]) -> str:
    text = json.dumps(plain(config, "config"), sort_keys=True)
    return hashlib.sha256(f"{code}\n{text}".encode()).hexdigest()


class Done(NamedTuple):
    """The stored result of a unit.

    Attributes:
        record: What it measured; no clock is in it.
        seconds: Of a core that it took, with the making of its start if it was the first.
    """

    record: dict[str, Any]
    seconds: float


def done(unit: Unit, out: Path) -> Done | None:
    """The stored result of a unit; None where it has to be done, or done again."""
    file = unit.file(out)
    if not file.is_file():
        return None
    try:
        stored = read_object(file)
    except ConfigurationError:  # damaged: done again
        return None
    record, seconds = stored.get("record"), stored.get("seconds")
    if stored.get("key") != unit.key or not isinstance(record, dict):
        return None
    return Done(record, seconds if isinstance(seconds, int | float) else math.nan)


def record_of(unit: Unit, out: Path) -> dict[str, Any] | None:
    """The record of a unit that is done; None where it has to be done, or done again."""
    found = done(unit, out)
    return None if found is None else found.record


def work(unit: Unit, out: Path) -> float:
    """Do a unit and keep its record; the seconds of a core that it took, which are kept too."""
    import torch

    from adapters.lab.starts import remembered_in

    began, threads = time.thread_time(), torch.get_num_threads()
    torch.set_num_threads(1)  # the same sums in the same order on every machine
    try:
        with remembered_in(out / STARTS):
            run = getattr(importlib.import_module(unit.module), unit.function)
            record = plain(run(unit.config, unit.seed), "record")
    finally:
        torch.set_num_threads(threads)
    took = time.thread_time() - began
    file = unit.file(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = {"key": unit.key, "config": unit.config, "seconds": round(took, 3), "record": record}
    replace_file(file, [object_text(plain(kept, "unit"))])
    return took
