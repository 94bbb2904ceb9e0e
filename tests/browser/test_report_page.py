"""What a reader sees of a report, and does with it, in a browser."""

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.plots import all_drawn, has_steps, steps_of, sync_api
from tests.toolgym.report.synthetic_run import episode, grpo_numbers, synthetic_run
from toolgym.report import write_report
from toolgym.runs.run import Run

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


def drag(page: Any, plot: str, start: float, end: float) -> None:
    """Drag over a plot, from one share of its width to another."""
    element = page.locator(f"#{plot}")
    element.scroll_into_view_if_needed()
    box = element.bounding_box()
    middle = box["y"] + box["height"] / 3
    page.mouse.move(box["x"] + start * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], middle, steps=5)
    page.mouse.up()


def test_a_report_is_drawn_and_looks_as_it_should(
    one: Path, open_page: Any, screenshot: Any
) -> None:
    page = all_drawn(open_page(one))

    assert page.locator(".plot svg").count() == page.locator(".plot").count() > 15
    assert page.locator(".plot").count() == page.locator(".chart").count()
    screenshot(page, "report")


def test_the_pointer_is_told_the_values_of_a_step(
    runs: list[Run], one: Path, open_page: Any, screenshot: Any
) -> None:
    page = all_drawn(open_page(one))
    logged = {record["step"]: record["entropy"] for record in runs[0].metrics("grpo")}
    plot = page.locator("#plot-entropy")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()

    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    page.locator(".tip").wait_for()

    step, value = re.findall(r"step (\d+)\s+Entropy ([\d.]+)", page.locator(".tip").inner_text())[0]
    assert float(value) == pytest.approx(logged[int(step)], rel=1e-3)
    screenshot(page, "report-hover", full=False)
    page.mouse.move(2, 2)
    page.locator(".tip").wait_for(state="hidden")


def test_steps_are_chosen_in_one_plot_and_shown_in_all_over_the_same_steps(
    one: Path, open_page: Any, screenshot: Any
) -> None:
    page = all_drawn(open_page(one))
    warmup = steps_of(page, "plot-warm-up-loss")

    drag(page, "plot-entropy", 0.4, 0.8)
    sync_api.expect(page.locator("#zoom [name=low]")).not_to_have_value("1")

    low, high = (int(page.locator(f"#zoom [name={end}]").input_value()) for end in ("low", "high"))
    assert 8 < low < high < 27
    for plot in ("plot-entropy", "plot-reward", "plot-what-the-guards-did"):
        has_steps(page, plot, low, high)
    assert steps_of(page, "plot-warm-up-loss") == warmup
    screenshot(page, "report-zoomed", full=False)

    page.locator("#zoom button").click()
    has_steps(page, "plot-reward", 1, 30)

    page.locator("#zoom [name=low]").fill("10")
    page.locator("#zoom [name=low]").press("Tab")
    has_steps(page, "plot-entropy", 10, 30)
    page.locator("#plot-entropy").dblclick()
    has_steps(page, "plot-entropy", 1, 30)


def test_a_run_is_switched_off_for_the_whole_page(
    both: Path, open_page: Any, screenshot: Any
) -> None:
    page = all_drawn(open_page(both))
    screenshot(page, "comparison")
    lines = page.locator("#plot-entropy [aria-roledescription='line mark']")
    sync_api.expect(lines).to_have_count(4)  # of two runs a thick and a thin one

    page.locator("#runs button", has_text="control").click()
    sync_api.expect(lines).to_have_count(2)
    others = page.locator("#plot-kl-divergence [aria-roledescription='line mark']")
    sync_api.expect(others).to_have_count(2)
    assert page.locator("#result tbody tr:visible").count() == 1
    assert page.locator(".episode[data-run='1']:visible").count() == 0
    assert page.locator("#runs button[aria-pressed=false]").count() == 1
    screenshot(page, "comparison-one-off", full=False)

    page.locator(".legend[data-for=plot-reward] button", has_text="control").click()
    sync_api.expect(lines).to_have_count(4)


def test_a_series_is_switched_off_in_its_plot_alone(one: Path, open_page: Any) -> None:
    page = all_drawn(open_page(one))
    lines = page.locator("#plot-seconds-per-step [aria-roledescription='line mark']")
    before = lines.count()
    others = page.locator("#plot-reward [aria-roledescription='line mark']").count()

    page.locator(".legend[data-for=plot-seconds-per-step] button").first.press("Enter")

    sync_api.expect(lines).to_have_count(before // 2)
    assert page.locator("#plot-reward [aria-roledescription='line mark']").count() == others


def test_episodes_are_found_by_their_end_by_an_error_and_by_a_word(
    runs: list[Run], one: Path, open_page: Any, screenshot: Any
) -> None:
    page = open_page(one)
    shown = page.locator("#tasks > .task:visible")
    assert shown.count() == SHOWN
    finder = page.locator("#finder")

    finder.locator("[name=verdict]").select_option("right")
    right = shown.count()
    assert 0 < right < SHOWN
    assert page.locator("#tasks > .task:visible .end:last-child:not(.right)").count() == 0
    assert finder.locator("output").inner_text() == f"{right} of {SHOWN} tasks"

    finder.locator("[name=verdict]").select_option("gained")
    gained = shown.locator(".note").all_text_contents()
    assert gained
    assert all("wrong before, right after" in note for note in gained)

    finder.locator("[name=verdict]").select_option("")
    finder.locator("[name=code]").select_option("unknown_table")
    assert shown.count() == SHOWN  # the second call of each is so
    finder.locator("[name=text]").fill("OLDER than 27?")
    assert shown.count() == 1
    finder.locator("[name=when]").select_option("after")
    assert page.locator(".episode[data-when=before]:visible").count() == 0
    screenshot(page, "episodes-found", full=False)

    finder.locator("[name=text]").fill("no such words")
    assert finder.locator("output").inner_text() == f"0 of {SHOWN} tasks"
    finder.locator("[name=text]").fill("")
    finder.locator("[name=order]").select_option("shortest")
    turns = [int(each.get_attribute("data-turns")) for each in shown.all()]
    assert turns == sorted(turns)


def test_a_link_opens_one_episode_that_was_folded(
    one: Path, open_page: Any, screenshot: Any
) -> None:
    folded = re.findall(
        r'<details class="task" id="([^"]+)" data-turns="\d+">', one.read_text("utf-8")
    )

    page = open_page(f"{one}#{folded[-1]}")

    task = page.locator(f"#{folded[-1]}")
    assert task.get_attribute("open") is not None
    sync_api.expect(task).to_be_in_viewport()
    screenshot(page, "episode-linked", full=False)

    page.locator("#finder [name=text]").fill("no such words")
    page.evaluate("id => { location.hash = id }", folded[0])
    page.locator(f"#{folded[0]}[open]").wait_for()


def test_behind_each_plot_stands_a_table(runs: list[Run], one: Path, open_page: Any) -> None:
    page = all_drawn(open_page(one))
    chart = page.locator(".chart", has=page.locator("#plot-entropy"))

    chart.locator("summary").click()

    rows = chart.locator("tbody tr")
    assert rows.count() == 30
    last = runs[0].metrics("grpo")[-1]["entropy"]
    assert float(rows.last.locator("td").inner_text()) == pytest.approx(last, rel=1e-3)


@pytest.mark.parametrize("width", [390, 820])
def test_nothing_is_wider_than_a_narrow_screen(
    one: Path, both: Path, open_page: Any, screenshot: Any, width: int
) -> None:
    for name, file in (("report", one), ("comparison", both)):
        page = all_drawn(open_page(file, width=width))

        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = "e => e.getBoundingClientRect().right > innerWidth + 1"
        for selector in (".card", ".task", ".plot svg", "#finder", ".tile"):
            elements = f"[...document.querySelectorAll('{selector}')].filter({wide}).length"
            assert page.evaluate(elements) == 0, selector
        if width == 390:
            screenshot(page, f"{name}-narrow")


def test_the_dark_page_is_dark_and_its_plots_with_it(
    both: Path, open_page: Any, screenshot: Any
) -> None:
    seen = {}
    for dark in (False, True):
        page = all_drawn(open_page(both, dark=dark))
        line = "document.querySelector(\"#plot-entropy [aria-roledescription='line mark']\")"
        seen[dark] = page.evaluate(
            f"[getComputedStyle(document.body).backgroundColor, getComputedStyle({line}).stroke,"
            " getComputedStyle(document.querySelector('#plot-entropy text')).fill]"
        )
    screenshot(page, "comparison-dark")

    assert seen[False] == ["rgb(247, 248, 250)", "rgb(213, 94, 0)", "rgb(90, 100, 114)"]
    assert seen[True] == ["rgb(17, 20, 25)", "rgb(242, 140, 69)", "rgb(162, 171, 184)"]


def test_a_dark_page_is_printed_on_white_with_its_plots(
    one: Path, open_page: Any, screenshot: Any, tmp_path: Path
) -> None:
    page = all_drawn(open_page(one, dark=True))

    paper = page.pdf(format="A4")
    pages = len(re.findall(rb"/Type\s*/Page\b", paper))
    assert paper.startswith(b"%PDF")
    assert 3 <= pages <= 20
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 794, "height": 1123})
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#finder, .top").locator("visible=true").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 794
    assert page.locator(".plot svg:visible").count() > 15
    screenshot(page, "report-printed")


def test_a_hostile_run_does_nothing_and_is_searched_as_text(open_page: Any, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"env_id": HOSTILE, "model": HOSTILE})
    other = Run.create(tmp_path / HOSTILE.replace("/", "|")[:60], {})
    for step in range(1, 6):
        for each in (run, other):
            each.log_metrics(grpo_numbers(random.Random(step), step, True))
    for phase in ("before", "after"):
        records = [episode(number, phase, number > 0, HOSTILE) for number in range(4)]
        for record in records:
            record["turns"][1]["errors"] = [HOSTILE]
        run.log_rollouts(records)
    page = all_drawn(open_page(write_report([run, other], tmp_path / "page.html")))

    page.locator("#finder [name=text]").fill('onerror="window.struck')
    assert page.locator("#finder output").inner_text() == "4 of 4 tasks"
    page.locator("#finder [name=code]").select_option(index=1)
    plot = page.locator("#plot-entropy")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    page.locator(".tip").wait_for()

    assert "window.struck" in page.locator(".tip").inner_text()
    assert page.evaluate("window.struck") is None
    assert page.locator("img").count() == 0


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


def test_without_scripts_the_page_is_read_in_tables(one: Path, browser: Any) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(one.as_uri())

    assert page.locator("h1").inner_text() == "sqlgym/Explore-v0: explore"
    page.locator(".chart details summary").first.click()
    assert page.locator(".chart details[open] td").first.is_visible()
    assert page.locator("#finder:visible, #zoom:visible").count() == 0
    context.close()


def test_an_evaluation_has_a_page_too(tmp_path: Path, open_page: Any, screenshot: Any) -> None:
    run = Run.create(tmp_path / "expert", {"kind": "evaluation", "env_id": "sqlgym/Explore-v0"})
    records = [episode(n, "eval", n % 3 > 0) for n in range(12)]
    run.log_rollouts(records)
    figures = {"accuracy": 8 / 12, "interval": [0.39, 0.86], "episodes": 12, "mean_score": 0.7}
    run.write_summary({"status": "complete", "evaluations": [{"after": figures}]})

    page = all_drawn(open_page(write_report(run)))
    page.locator("#finder [name=verdict]").select_option("right")

    assert page.locator("#tasks > .task:visible").count() == 8
    screenshot(page, "evaluation")
