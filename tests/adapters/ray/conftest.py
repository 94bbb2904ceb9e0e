"""A Ray cluster on this machine, which all tests here share, and a package for its workers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.commands.command_line import install

DEADLY = """
    import os, signal
    from pathlib import Path
    from toolgym.errors import ConfigurationError
    from toolgym.policies import ExpertPolicy

    class Deadly(ExpertPolicy):
        def __init__(self, marks, at, deaths):
            super().__init__()
            self.marks, self.at, self.deaths = Path(marks), at, deaths

        def act(self, situations):
            if self.at in {each.env.task.id for each in situations}:
                died = len(list(self.marks.iterdir()))
                if died < self.deaths:
                    (self.marks / f"{died}").write_text(str(os.getpid()))
                    os.kill(os.getpid(), signal.SIGKILL)
            return super().act(situations)

    def load(name, seed=0, **options):
        return Deadly(**options)

    def refuse(name, **options):
        raise ConfigurationError("this policy is out of order; take another one.")
"""


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The `map` of a cluster of its own."""
    from adapters.ray.workers import ray_workers

    points = {"deadly": "load", "refuse": "refuse"}
    group = {f"toolgym.policies: {name}": f"deadly:{value}" for name, value in points.items()}
    folder = install(tmp_path_factory.mktemp("package"), "deadly", DEADLY, group)
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        patch.setenv("PYTHONPATH", path)  # what workers of the cluster will inherit
        with ray_workers("local") as map_parts:
            yield map_parts


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A folder in which workers leave a file before they die."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder
