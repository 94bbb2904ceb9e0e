"""`toolgym watch` in a browser: the page follows the run, and keeps what its reader chose."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.plots import all_drawn, has_steps
from tests.toolgym.report.synthetic_run import episode, grpo_numbers
from toolgym.report.server import WatchedRun, WatchServer
from toolgym.runs.run import Run

pytestmark = pytest.mark.nightly


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "young", {"env_id": "sqlgym/Explore-v0", "model": "a model"})


@pytest.fixture
def address(run: Run) -> Iterator[str]:
    with WatchServer(WatchedRun(run.path)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


def log(run: Run, first: int, last: int) -> None:
    for step in range(first, last + 1):
        run.log_metrics(grpo_numbers(random.Random(step), step, True))


def test_the_page_follows_a_run_from_its_beginning(
    run: Run, address: str, open_page: Any, screenshot: Any
) -> None:
    with run.held():
        page = open_page(address)
        assert page.locator("#learning .nothing").inner_text().startswith("There are no metrics")
        assert page.locator("#live").inner_text().lower() == "live"

        log(run, 1, 20)
        page.locator("#plot-entropy svg").wait_for()
        assert "it is at grpo" in page.locator(".alarm").first.inner_text()
        all_drawn(page)
        screenshot(page, "watch")

    run.log_rollouts(episode(number, "after", number % 2 > 0) for number in range(6))
    run.write_summary({"status": "complete", "gain": "It learnt something."})
    page.locator("#tasks > .task").nth(5).wait_for(state="attached")
    page.locator(".gain", has_text="It learnt something.").wait_for()
    assert page.locator(".alarm").count() == 0


def test_what_a_reader_chose_is_kept_when_the_page_is_renewed(
    run: Run, address: str, open_page: Any
) -> None:
    log(run, 1, 20)
    run.log_rollouts(episode(number, "before", number % 2 > 0) for number in range(6))
    page = all_drawn(open_page(address))
    page.locator("#zoom [name=low]").fill("5")
    page.locator("#zoom [name=high]").fill("15")
    page.locator("#zoom [name=high]").press("Tab")
    page.locator(".legend[data-for=plot-reward] button").first.click()
    page.locator("#finder [name=text]").fill("older than 22")
    page.locator("#configuration > summary").click()
    page.evaluate("scrollTo(0, 900)")
    version = page.locator("body").get_attribute("data-version")

    log(run, 21, 24)
    page.locator(f"body:not([data-version='{version}'])").wait_for()
    all_drawn(page)

    has_steps(page, "plot-entropy", 5, 15)
    assert page.locator("#zoom [name=high]").get_attribute("max") == "24"
    pressed = page.locator(".legend[data-for=plot-reward] button").first
    assert pressed.get_attribute("aria-pressed") == "false"
    assert page.locator("#finder [name=text]").input_value() == "older than 22"
    assert page.locator("#tasks > .task:visible").count() == 1
    assert page.locator("#configuration[open]").count() == 1
    assert page.evaluate("Math.abs(scrollY - 900) < 60")
    page.locator("#zoom button").click()
    has_steps(page, "plot-entropy", 1, 24)


def test_a_damaged_run_is_told_and_its_page_comes_back(
    run: Run, address: str, open_page: Any
) -> None:
    log(run, 1, 3)
    whole = (run.path / "metrics.jsonl").read_bytes()
    page = all_drawn(open_page(address))

    (run.path / "metrics.jsonl").write_bytes(b"no JSON\n" + whole)
    page.locator("text=This run cannot be read now").wait_for()

    (run.path / "metrics.jsonl").write_bytes(whole)
    page.locator("#plot-entropy svg").wait_for()
