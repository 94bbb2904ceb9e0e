"""What a reader sees of a report, and does with it, in a browser."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.report.synthetic_run import episode, grpo_numbers, synthetic_run
from toolgym.report import write_report
from toolgym.runs.run import Run

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
expect.set_options(timeout=20_000)

pytestmark = pytest.mark.nightly
HOSTILE = (
    '<img src=x onerror="window.struck = 1"></script><script>window.struck = 2</script>\'\u2028'
)
SHOWN = 40


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        synthetic_run(folder / "explore", steps=30),
        synthetic_run(folder / "control", seed=1, learns=False, steps=30),
    ]


@pytest.fixture(scope="module")
def one(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(runs[0], tmp_path_factory.mktemp("one"), episodes=SHOWN)


@pytest.fixture(scope="module")
def both(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(runs, tmp_path_factory.mktemp("both"), episodes=SHOWN)


def all_drawn(page: Any) -> Any:
    """The page, once each of its plots is drawn."""
    expect(page.locator(".plot:not(:has(svg))")).to_have_count(0)
    return page


def plot(page: Any, title: str) -> Any:
    """A plot by its title."""
    return page.locator("figure", has=page.get_by_text(title, exact=True)).locator("svg")


def point_at(page: Any, element: Any) -> None:
    """Rest the pointer on the middle of a plot."""
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def steps_of(element: Any) -> list[int]:
    """The numbers along the horizontal axis of a plot."""
    axis = element.locator(".role-axis", has_text="step").locator(".role-axis-label text")
    return sorted(int(text) for text in axis.all_text_contents() if text.isdecimal())


def curves_of(element: Any) -> Any:
    return element.locator("[aria-roledescription='line mark']")


def test_a_report_is_drawn(one: Path, open_page: Any, screenshot: Any) -> None:
    page = all_drawn(open_page(one))

    assert page.locator(".plot svg").count() == page.locator("figure").count() > 8
    screenshot(page, "report")


def test_the_pointer_shows_the_values_of_a_step(
    runs: list[Run], one: Path, open_page: Any, screenshot: Any
) -> None:
    page = all_drawn(open_page(one))
    logged = {record["step"]: record["entropy"] for record in runs[0].metrics("grpo")}

    point_at(page, plot(page, "Entropy"))
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for()

    step, value = re.findall(r"step\s+(\d+)\s+entropy\s+([\d.]+)", tip.inner_text())[0]
    assert float(value) == pytest.approx(logged[int(step)], rel=1e-3)
    screenshot(page, "report-hover", full=False)
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")


def test_a_zoom_holds_for_all_plots_over_the_same_steps(one: Path, open_page: Any) -> None:
    page = all_drawn(open_page(one))
    entropy, reward, warmup = (plot(page, each) for each in ("Entropy", "Reward", "Loss"))
    steps, warmup_steps = steps_of(reward), steps_of(warmup)

    point_at(page, entropy)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_timeout(500)

    assert steps[0] < steps_of(reward)[0] <= steps_of(reward)[-1] < steps[-1]
    assert steps_of(entropy) == steps_of(reward)
    assert steps_of(warmup) == warmup_steps
    entropy.dblclick(position={"x": 200, "y": 100})
    page.wait_for_timeout(500)
    assert steps_of(reward) == steps


def test_a_legend_shows_one_run_alone_in_all_plots(
    both: Path, open_page: Any, screenshot: Any
) -> None:
    page = all_drawn(open_page(both))
    screenshot(page, "comparison")
    entropy, other = plot(page, "Entropy"), plot(page, "KL divergence")
    expect(curves_of(entropy)).to_have_count(4)  # of each run a thick and a thin one

    names = entropy.locator(".role-legend-label text")
    names.first.click()
    expect(curves_of(entropy)).to_have_count(2)
    expect(curves_of(other)).to_have_count(2)
    screenshot(page, "comparison-one", full=False)

    names.nth(1).click()
    expect(curves_of(other)).to_have_count(4)


def test_episodes_are_found_by_their_kind_and_by_words(one: Path, open_page: Any) -> None:
    page = open_page(one)
    shown, count = page.locator(".task:visible"), page.locator("#filter output")
    assert count.inner_text() == f"{SHOWN} of {SHOWN} tasks"

    page.locator("#filter select").select_option("wrong before, correct after")
    gained = shown.count()
    assert 0 < gained < SHOWN
    assert shown.locator(".marks").all_text_contents() == ["✕✓"] * gained

    page.locator("#filter select").select_option("tool error")
    assert shown.count() == SHOWN
    page.locator("#filter input").fill("OLDER than 27?")
    assert count.inner_text() == f"1 of {SHOWN} tasks"
    page.locator("#filter input").fill("no such words")
    assert shown.count() == 0


def test_a_link_opens_a_task_that_was_folded(one: Path, open_page: Any) -> None:
    page = open_page(f"{one}#task-{SHOWN}")

    expect(page.locator(f".task[open] #task-{SHOWN}")).to_be_in_viewport()


@pytest.mark.parametrize("width", [390, 820, 1280, 1920])
def test_nothing_is_cut_off_or_needs_scrolling_of_the_page(
    one: Path, both: Path, open_page: Any, screenshot: Any, width: int
) -> None:
    for name, file in (("report", one), ("comparison", both)):
        page = all_drawn(open_page(file, width=width))

        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = "e => e.getBoundingClientRect().right > innerWidth + 1"
        for selector in (".card", ".plot svg", "#filter", "#results .numbers", "h1, p"):
            elements = f"[...document.querySelectorAll('{selector}')].filter({wide}).length"
            assert page.evaluate(elements) == 0, selector
        scrolls = (
            "[...document.querySelectorAll('.scroll')].some(e => e.scrollWidth > e.clientWidth)"
        )
        assert width == 390 or not page.evaluate(scrolls)
        screenshot(page, f"{name}-{width}")


def test_the_dark_page_is_dark_and_its_plots_with_it(
    both: Path, open_page: Any, screenshot: Any
) -> None:
    seen = {}
    for dark in (False, True):
        page = all_drawn(open_page(both, dark=dark))
        color = "(e, name) => getComputedStyle(e)[name]"
        curve = curves_of(plot(page, "Entropy")).first
        text = plot(page, "Entropy").locator(".role-axis-label text").first
        seen[dark] = (
            page.locator("body").evaluate(color, "backgroundColor"),
            curve.evaluate(color, "stroke"),
            text.evaluate(color, "fill"),
        )
    screenshot(page, "comparison-dark")

    assert seen[False] == ("rgb(247, 248, 250)", "rgb(0, 114, 178)", "rgb(90, 100, 114)")
    assert seen[True] == ("rgb(17, 20, 25)", "rgb(86, 180, 233)", "rgb(162, 171, 184)")


def test_a_hostile_run_does_nothing_and_is_searched_as_text(open_page: Any, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "__proto__", {"env_id": HOSTILE, "model": HOSTILE})
    other = Run.create(tmp_path / HOSTILE.replace("/", "|")[:60], {})
    figures = {"accuracy": 0.5, "interval": [0.4, 0.6]}
    for each in (run, other):
        for step in range(1, 6):
            each.log_metrics(grpo_numbers(random.Random(step), step, True))
        names = ("__proto__", HOSTILE)
        each.write_summary({"evaluations": [{"name": name, "after": figures} for name in names]})
    for phase in ("before", "after"):
        records = [episode(number, phase, number > 0, HOSTILE) for number in range(4)]
        for record in records:
            record["turns"][1]["errors"] = [HOSTILE]
        run.log_rollouts(records)

    for shown in (run, [run, other]):
        page = all_drawn(open_page(write_report(shown, tmp_path / "page.html")))
        page.locator("#filter input").fill('onerror="window.struck')
        assert page.locator("#filter output").inner_text() == "4 of 4 tasks"
        point_at(page, plot(page, "Entropy"))
        page.locator("#vg-tooltip-element.visible").wait_for()

        assert page.evaluate("window.struck") is None
        assert page.locator("img").count() == 0
    assert "window.struck" in page.locator("#vg-tooltip-element").inner_text()


def test_a_script_that_is_put_into_the_page_does_not_run(one: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto(one.as_uri())

    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.struck = 1';"
        " document.body.append(s); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; }"
    )
    refused = page.evaluate(
        "() => { try { return setTimeout('window.struck = 2') } catch (e) { return e.name } }"
    )
    page.wait_for_timeout(200)

    assert page.evaluate("window.struck") is None
    assert refused is not None
    page.close()


def test_without_scripts_results_and_episodes_can_be_read(one: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(one.as_uri())

    assert page.locator("h1").inner_text() == "sqlgym/Explore-v0: explore"
    assert page.locator("#results .numbers td").first.is_visible()
    page.locator(".task summary").nth(1).click()
    assert page.locator(".task[open] .observation").last.is_visible()
    assert page.locator("#filter:visible").count() == 0
    context.close()


def test_an_evaluation_has_a_page_too(tmp_path: Path, open_page: Any, screenshot: Any) -> None:
    run = Run.create(tmp_path / "expert", {"kind": "evaluation", "env_id": "sqlgym/Explore-v0"})
    run.log_rollouts(episode(n, "eval", n % 3 > 0) for n in range(12))
    figures = {"accuracy": 8 / 12, "interval": [0.39, 0.86], "episodes": 12, "mean_score": 0.7}
    run.write_summary({"status": "complete", "evaluations": [{"after": figures}]})

    page = all_drawn(open_page(write_report(run)))
    page.locator("#filter select").select_option("correct")

    assert page.locator(".task:visible").count() == 8
    assert page.locator("#curves").count() == 0
    screenshot(page, "evaluation")
