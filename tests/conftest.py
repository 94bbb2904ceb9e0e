"""What every test shares: a cache folder of the run's own, the Spider data, one hypothesis profile.

The environment is set in `pytest_configure`, before any test module is imported, since
parametrised tests open data sets while pytest collects; the processes of pytest-xdist inherit it,
so all of them share one cache folder.
"""

import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SPIDER = "TOOLGYM_SPIDER"
NO_SPIDER = f"{SPIDER} is not set: it names a folder in the Spider layout"

# The same examples on every run and machine. A slow machine fails no test.
settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")

own_cache = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the run its own cache folder, no hub, one thread per process, and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background of a shell. Commands under test would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        return  # a process of pytest-xdist: it has the environment of the one that started it
    config.stash[own_cache] = tempfile.mkdtemp(prefix="toolgym-tests-")
    os.environ["TOOLGYM_CACHE"] = config.stash[own_cache]
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for garbage.

    Libraries collect garbage between two steps of a training. Over the million objects of all the
    modules that tests import, each time would take longer than the step.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache folder with the process that made it."""
    if own_cache in config.stash:
        shutil.rmtree(config.stash[own_cache], ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests did not run because the Spider data is not at hand."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if SPIDER in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests skipped: {NO_SPIDER}")


@pytest.fixture(scope="session")
def spider() -> Path:
    """The folder with real Spider data; a test that asks for it is skipped where there is none."""
    if not os.environ.get(SPIDER):
        pytest.skip(NO_SPIDER)
    folder = Path(os.environ[SPIDER]).resolve()
    if not (folder / "tables.json").is_file():
        pytest.fail(f"{SPIDER} is {folder}, and there is no tables.json in it", pytrace=False)
    return folder
