"""Several runs on one page: their curves in one plot, and the settings that differ."""

from pathlib import Path

import pytest

from tests.toolgym.report.synthetic_run import Page, synthetic_run
from toolgym.report import tables, write_report
from toolgym.report.view import views
from toolgym.runs.run import Run


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a run and its control, which was written into a folder."""
    folder = tmp_path_factory.mktemp("page")
    run = synthetic_run(folder / "explore", played=4)
    control = synthetic_run(folder / "control", seed=1, learns=False, played=4)
    file = write_report([run, control], folder)
    assert file == folder / "report.html"
    return Page(file)


def test_runs_share_each_plot_and_its_legend(page: Page) -> None:
    assert "sqlgym/Explore-v0: 2 runs" in page.text
    assert {"Reward", "Reward max", "Entropy"} < set(page.plots)
    names = ["1. explore", "2. control"]
    for title, plot in page.plots.items():
        if title != "Accuracy":
            assert plot["encoding"]["color"]["scale"]["domain"] == names
    entropy = page.plots["Entropy"]
    assert list(dict.fromkeys(row["series"] for row in entropy["data"]["values"])) == names
    assert entropy["description"].count("in 60 steps.") == 2


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

    (trl,) = tables.seeds_together(views(runs, 0))

    assert trl.head == "1. trl-1, 3. trl-2, 4. trl-3"
    # The mean of .4, .6 and .5 is .5, its standard error .058, and t of 2 degrees is 4.303.
    assert [
        (value.replace("\xa0", " "), ends.replace("\xa0", " ")) for value, ends in trl.cells
    ] == [
        ("20.0 %", "-4.8 to 44.8 %"),
        ("50.0 %", "25.2 to 74.8 %"),
        ("30.0 %", "5.2 to 54.8 %"),
    ]
    assert "runs that differ only in the seed" in Page(write_report(runs)).text
