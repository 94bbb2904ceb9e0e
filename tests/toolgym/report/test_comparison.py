"""Several runs on one page: laid over each other, with what sets them apart told first."""

import re
from pathlib import Path

import pytest

from tests.toolgym.report.synthetic_run import Page, synthetic_run
from toolgym.report import tables, write_report
from toolgym.report.view import views
from toolgym.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return synthetic_run(tmp_path_factory.mktemp("runs") / "explore", played=4)


@pytest.fixture(scope="module")
def page(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a run and its control, which was written into a folder."""
    folder = tmp_path_factory.mktemp("page")
    control = synthetic_run(folder / "control", seed=1, learns=False, played=4)
    file = write_report([run, control], folder)
    assert file == folder / "report.html"
    return Page(file)


def test_runs_are_laid_over_each_other_with_a_legend(page: Page) -> None:
    assert "sqlgym/Explore-v0: 2 runs" in page.text
    reward = page.plots["plot-reward"]
    series = [(each["label"], each["run"]) for each in reward["series"]]
    assert series == [("explore", 0), ("control (shuffled rewards)", 1)]
    assert {row["k"] for row in page.values("plot-reward", "area")} == {"0", "1"}
    words = r"explore: from .* control \(shuffled rewards\): from"
    assert re.search(words, reward["spec"]["description"])
    titles = page.titles()
    assert {"Equal outcomes", "Equal rewards", "Sampled groups", "Clipped low"} < set(titles)
    assert "explore: at 4 of 60 steps: warn 2 times, first at step 12" in page.text
    assert "control (shuffled rewards): at none of 60 steps." in page.text


def test_what_sets_runs_apart_stands_in_a_table_of_its_own(page: Page) -> None:
    told = page.text[page.text.index("What differs") : page.text.index("Learning Success")]
    assert told.split() == [
        *("What", "differs", "setting", "explore", "control", "(shuffled", "rewards)"),
        *("control", "null", "shuffled-rewards", "seed", "0", "1"),
    ]
    assert re.findall(r'<tr class="differs"><th scope="row">(\w+)', page.source) == [
        "control",
        "seed",
    ]


def test_a_setting_that_is_kept_twice_is_told_once_and_versions_count_too(tmp_path: Path) -> None:
    runs = [
        Run.create(
            tmp_path / name,
            {
                "seed": seed,
                "settings": {"seed": seed, "steps": 3},
                "steps": 3,
                "reproducibility": {"packages": {"torch": torch}},
            },
        )
        for name, seed, torch in (("a", 1, "2.6"), ("b", 2, "2.7"))
    ]

    rows = tables.differences(views(runs))

    assert [(row.key, row.values) for row in rows] == [
        ("settings.seed", ["1", "2"]),
        ("packages.torch", ["2.6", "2.7"]),
    ]


def test_settings_that_only_one_trainer_has_do_not_hide_the_others(tmp_path: Path) -> None:
    own = {f"knob_{number}": number for number in range(9)}
    runs = [
        Run.create(tmp_path / "a", {"own": own, "trainer": "reference"}),
        Run.create(tmp_path / "b", {"trainer": "trl"}),
    ]

    assert [row.key for row in tables.differences(views(runs))][:2] == ["trainer", "own.knob_0"]
    page = Page(write_report(runs, tmp_path / "page.html"))
    assert "trainer reference trl 9 settings that only some of the runs have" in page.text
    assert "by the reference trainer." in page.text


@pytest.mark.nightly
def test_many_runs_are_drawn_without_bands_and_thin_lines(run: Run, tmp_path: Path) -> None:
    page = Page(write_report([run] * 4, tmp_path / "page.html"))

    assert page.layers("plot-reward", "area") == []
    assert len(page.layers("plot-reward", "line")) == 1
    assert "Mean of the last 6 steps." in page.text


def evaluated(folder: Path, trainer: str, seed: int, before: float, after: float) -> Run:
    run = Run.create(folder / f"{trainer}-{seed}", {"settings": {"trainer": trainer, "seed": seed}})
    run.write_summary({"before": {"accuracy": before}, "after": {"accuracy": after}})
    return run


def test_seeds_of_the_same_settings_are_taken_together(tmp_path: Path) -> None:
    runs = [
        evaluated(tmp_path, "trl", 1, 0.1, 0.4),
        evaluated(tmp_path, "reference", 1, 0.1, 0.5),
        evaluated(tmp_path, "trl", 2, 0.2, 0.6),
        evaluated(tmp_path, "trl", 3, 0.3, 0.5),
    ]

    trl, reference = tables.together(views(runs))

    assert (trl.name, trl.styles) == ("trainer trl", (0, 2, 3))
    # The mean of .4, .6 and .5 is .5, its standard error .058, and t of 2 degrees is 4.303.
    assert (trl.before, trl.after) == ("20.0 % [−4.8, 44.8]", "50.0 % [25.2, 74.8]")
    assert (trl.gain, trl.each) == ("+30.0 % [5.2, 54.8]", "40.0, 60.0, 50.0")
    assert (reference.name, reference.after) == ("trainer reference", "50.0 %")
    assert "seeds taken together" in Page(write_report(runs, tmp_path / "page.html")).text


def test_two_seeds_have_a_mean_without_an_interval(tmp_path: Path) -> None:
    runs = [evaluated(tmp_path, "trl", seed, 0.1, 0.4 + seed / 10) for seed in (1, 2)]

    (row,) = tables.together(views(runs))

    assert (row.after, row.each) == ("55.0 %", "50.0, 60.0")


def test_runs_that_are_each_alone_are_not_taken_together(tmp_path: Path) -> None:
    runs = [evaluated(tmp_path, trainer, 1, 0.1, 0.2) for trainer in ("trl", "reference")]

    assert tables.together(views(runs)) == []
    alike = [evaluated(tmp_path, "trl", seed, 0.1, 0.2) for seed in (2, 3)]
    assert [row.name for row in tables.together(views(alike))] == ["all runs"]


def test_a_seed_without_an_evaluation_is_a_gap_and_no_zero(tmp_path: Path) -> None:
    runs = [evaluated(tmp_path, "trl", 1, 0.1, 0.4)]
    runs.append(Run.create(tmp_path / "new", {"settings": {"trainer": "trl", "seed": 2}}))

    (row,) = tables.together(views(runs))

    assert (row.after, row.each) == ("40.0 %", f"40.0, {tables.NOTHING}")


def test_runs_of_one_name_are_told_apart_and_the_page_lies_beside_the_first(tmp_path: Path) -> None:
    runs = [synthetic_run(tmp_path / parent / "run", steps=2, played=2) for parent in ("a", "b")]

    file = write_report(runs)

    assert file == tmp_path / "a" / "report.html"
    assert {"a/run", "b/run"} < set(Page(file).text.split())
