"""`toolgym lab`, and its experiments at the smallest size."""

import json

import pytest
import typer
from typer.testing import CliRunner

pytest.importorskip("trl", reason="needs the extra `train`")

from adapters.commands.lab import command
from adapters.lab.catalogue import MODULES, experiment
from toolgym.cli import help_text, told_in_sentences

pytestmark = pytest.mark.torch


def invoke(*arguments):
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command("lab", help=help_text(command))(told_in_sentences(command))
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_list_names_every_experiment():
    shown = invoke("--list")

    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == list(MODULES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such"], "there is no experiment 'no-such'; choose among"),
        (["--quick", "--full"], "exclude each other"),
        pytest.param(
            *(["post-episode", "--piece", "9/9"], "there are 1 pieces"), marks=pytest.mark.nightly
        ),
    ],
)
def test_wrong_use_is_told_with_its_cure(arguments, message):
    shown = invoke(*arguments)

    assert shown.exit_code == 2
    assert message in shown.output


@pytest.mark.nightly
def test_penalties_after_the_end_are_judged_and_the_same_twice(tmp_path):
    written = []
    for name in ("a", "b"):
        shown = invoke("post-episode", "--smoke", "--jobs", 1, "--out", tmp_path / name)
        assert shown.exit_code == 0, shown.output
        written.append((tmp_path / name / "results.json").read_bytes())

    assert written[0] == written[1]
    found = json.loads(written[0])["post-episode"]["predictions"]
    assert {each["verdict"] for each in found} == {"confirmed"}
    assert (tmp_path / "a" / "report.html").is_file()
    again = invoke("post-episode", "--smoke", "--jobs", 1, "--out", tmp_path / "a")
    assert "1 units, 0 to do" in again.output


@pytest.mark.nightly
def test_a_report_tells_what_is_done_and_does_nothing_more(tmp_path):
    shown = invoke("post-episode", "--smoke", "--report", "--out", tmp_path)

    assert shown.exit_code == 0, shown.output
    assert "post-episode (smoke, 0 of 1 units)" in shown.output
    assert "to do" not in shown.output
    assert not (tmp_path / "units").exists()
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("name", MODULES)
def test_an_experiment_promises_what_it_can_measure(name):
    found = experiment(name)
    cells = {scale: found.cells(scale) for scale in ("smoke", "quick", "full")}

    assert found.name == name
    assert set(cells["smoke"]) <= set(cells["quick"]) <= set(cells["full"])
    for cell, config in cells["quick"].items():
        assert cells["full"][cell] == config
        json.dumps(config)
    assert found.seeds["smoke"] <= found.seeds["quick"] <= found.seeds["full"]
    names = [prediction.name for prediction in found.predictions]
    assert len(set(names)) == len(names)
    for prediction in found.predictions:  # nothing is there yet, and nothing breaks
        assert prediction.verdict({}).outcome == "inconclusive"
    assert all(figure.is_empty for figure in found.figures({}))
