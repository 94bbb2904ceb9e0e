"""A report shows all that a run left behind, says what is missing, and trusts no text."""

import base64
import hashlib
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.commands.command_line import run_here
from tests.toolgym.report.synthetic_run import Page, episode, synthetic_run
from toolgym.errors import ConfigurationError
from toolgym.report import charts, library, tables, transcripts, write_report
from toolgym.report.view import RunView, views
from toolgym.runs.run import Run

HOSTILE = '<script>alert(1)</script> & "quotes" \'\x00\x1b\ud800\u202e </pre></td>'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return synthetic_run(tmp_path_factory.mktemp("runs") / "explore", played=24)


@pytest.fixture(scope="module")
def page(run: Run) -> Page:
    return Page(write_report(run))


def test_the_first_lines_say_what_was_trained_on_what(page: Page) -> None:
    assert (
        "sqlgym/Explore-v0: explore The tiny model (1.1 M parameters) was trained on "
        "sqlgym/Explore-v0 (data set tiny) by TRL in 6 min 42 s." in page.text
    )
    assert "it learnt no new skill" in page.text
    assert "Not complete" not in page.text


def test_the_table_holds_both_evaluations(run: Run, page: Page) -> None:
    for when in ("before", "after"):
        figures = run.summary[when]
        low, high = (f"{100 * end:.1f}" for end in figures["interval"])
        accuracy = f"{100 * figures['accuracy']:.1f}"
        assert f"{when} {accuracy} % {low} to {high} %" in page.text


def test_each_metric_that_was_logged_has_a_plot(page: Page) -> None:
    _, *parts = re.split(r'<h3 class="part">(.*?)</h3>', page.source)
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    shown = {part: re.findall(r"<h3>(.*?)</h3>", text) for part, text in texts.items()}
    shown["Cost and warm-up"].remove("How episodes ended")
    assert shown == {
        "Success": ["Reward", "Sampled accuracy", "Answered", "Completion length"],
        "What groups teach": ["Groups without signal", "Dynamic sampling", "Sampling rounds"],
        "The policy and its updates": [
            *("Entropy", "KL divergence", "Gradient norm", "Clipping", "Importance ratio"),
        ],
        "Guards": ["What the guards did", "Updates that were not kept", "Learning rate left"],
        "Calls": ["Validity", "Failed calls", "Repairs per call"],
        "Cost and warm-up": ["Seconds per step", "Warm-up loss"],
    }


def test_what_is_not_drawn_is_told_in_words(page: Page) -> None:
    constant = "Surplus groups (0), Masked groups (0), Dual clip (0 %), Learning rate (0.001)"
    assert f"The same at every step, so not drawn: {constant}, Faults (0)." in page.text
    absent = "Loss, Not finite, Updates followed by a collapse, Rollouts without an end"
    assert f"Not logged, so not shown: {absent}, Tokens learnt from, Peak memory." in page.text


def test_every_plot_has_a_name_for_who_cannot_see_it_and_a_table_behind_it(page: Page) -> None:
    titles = page.titles()
    names = re.findall(r'role="figure" aria-label="(.*?): ', page.source)

    assert names == titles
    assert len(page.plots) == len(titles) == page.source.count('<details class="behind">')
    table = page.source.split('id="plot-entropy"')[1].split("</table>")[0]
    steps = [int(step) for step in re.findall(r'<th scope="row">(\d+)</th>', table)]
    assert (steps[0], steps[-1], len(steps)) == (1, 60, 40)


def test_a_step_is_drawn_as_it_was_logged(run: Run, page: Page) -> None:
    logged = {record["step"]: record["entropy"] for record in run.metrics("grpo")}

    rows = page.values("plot-entropy", "line")

    assert {row["x"]: row["raw"] for row in rows} == pytest.approx(logged, rel=1e-5)


def test_the_page_is_whole_and_asks_nobody_for_anything(page: Page) -> None:
    assert page.open == []
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    links = [value for name, value in page.attributes if name in ("src", "href")]
    assert all(link.startswith("#") for link in links)
    assert not [name for name, _ in page.attributes if name[:2] == "on"]
    assert not re.search(r"url\(|@import", page.source.split("</style>")[0])


def assert_that_the_policy_allows_its_two_scripts_and_nothing_else(page: Page) -> None:
    (policy,) = [value for name, value in page.attributes if value.startswith("default-src")]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    data, *scripts = page.scripts
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "script-src": " ".join(f"'sha256-{each}'" for each in hashes),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(scripts) == 2
    assert json.loads(data)["charts"]


def test_the_policy_allows_the_two_scripts_of_the_page_and_nothing_else(page: Page) -> None:
    assert_that_the_policy_allows_its_two_scripts_and_nothing_else(page)


@pytest.mark.integration
def test_a_page_with_the_library_itself_is_whole(
    run: Run, tmp_path: Path, whole_pages: None
) -> None:
    pytest.importorskip("vl_convert")

    page = Page(write_report(run, tmp_path / "page.html"))

    assert page.open == []
    assert page.tags.count("script") == 3
    assert len(page.scripts[1]) > 100_000
    assert_that_the_policy_allows_its_two_scripts_and_nothing_else(page)


def test_without_the_library_there_are_tables_and_a_line_that_says_how_to_get_plots(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_pages: None
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    library.plotting_script.cache_clear()
    try:
        bare = Page(write_report(run, tmp_path / "page.html"))
    finally:
        library.plotting_script.cache_clear()

    assert "pip install 'toolgym[report]' , then make this page again" in bare.text
    assert len(bare.scripts) == 2  # the data and the page's own
    assert bare.source.count('<details class="behind">') == len(bare.titles())
    assert "Entropy: from" in bare.text
    assert bare.source.count('role="figure"') == 0


def test_the_same_run_gives_the_same_bytes(run: Run, page: Page, tmp_path: Path) -> None:
    assert write_report(run, tmp_path / "new" / "page.html").read_text("utf-8") == page.source


def test_transcripts_show_calls_errors_repairs_and_parts(page: Page) -> None:
    for shown in (
        'describe(table_name="singr")',
        "✕ unknown_table",
        "⚒ repaired: renamed_key",
        "<tool_call>",
        "no call in: hm",
        "long observation",
        "outcome +1.000",
        "\N{MINUS SIGN}0.030",
    ):
        assert shown in page.text
    for story in ("wrong before, right after", "right before and after"):
        assert f"· {story}" in page.text


def test_nothing_that_a_model_or_a_database_wrote_becomes_markup(tmp_path: Path) -> None:
    config = {HOSTILE: HOSTILE, "env_id": HOSTILE, "model": HOSTILE, "control": HOSTILE}
    run = Run.create(tmp_path / "<b>run", {**config, "reproducibility": {HOSTILE: [HOSTILE]}})
    run.log_metrics({"phase": "grpo", "step": 1, "reward": 1.0, "entropy": HOSTILE})
    for phase in ("before", "after"):
        records = [episode(number, phase, number > 0, HOSTILE) for number in range(3)]
        for record in records:
            record["turns"][1]["calls"][0]["name"] = HOSTILE
            record["turns"][1]["repairs"] = record["turns"][1]["errors"] = [HOSTILE]
            record["reward_parts"] = {HOSTILE: 1.0}
        run.log_rollouts(records)
    evaluated = {"accuracy": 0.5, "interval": HOSTILE, "episodes": HOSTILE, "validity": HOSTILE}
    run.write_summary({"gain": HOSTILE, "before": evaluated, "after": evaluated})

    for runs in (run, [run, synthetic_run(tmp_path / "other", steps=2, played=2)]):
        page = Page(write_report(runs, tmp_path / "page.html"))

        assert page.open == []
        assert page.tags.count("script") == len(page.scripts) == 3
        assert page.text.count("<script>alert(1)</script>") > 20
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", page.source)
        assert "<" not in page.scripts[0]
        assert "alert(1)" not in page.scripts[1] + page.scripts[2]


def empty(run: Run) -> None:
    """Nothing is logged."""


def started(run: Run) -> None:
    run.log_metrics({"phase": "warmup", "step": 7, "loss": None})


def interrupted(run: Run) -> None:
    run.log_metrics({"phase": "grpo", "step": 3, "reward": 0.5})
    run.write_summary({"status": "interrupted", "before": {"accuracy": 0.5, "episodes": 4}})


def stopped(run: Run) -> None:
    run.log_metrics({"phase": "grpo", "step": 9, "guard_severity": 5})
    run.write_summary({"status": "stopped", "diagnosis": "Training stops.\n1. Warm up."})
    (run.path / "rollouts.jsonl").write_text('{"phase": "bef')


def odd(run: Run) -> None:
    run.write_summary({"before": 3, "after": {"accuracy": None, "interval": [1]}, "seconds": "x"})
    run.log_rollouts([{"phase": "before"}, episode(2, "before", False)])
    turns = [3, {"calls": ["x"], "errors": [None]}]
    run.log_rollouts([{"phase": "after", "turns": turns, "scored": False, "reward_parts": [1]}])


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (
            empty,
            [
                "There are no metrics",
                "it has no steps",
                "No episode of an evaluation was recorded",
                "No such record was written",
                "Nothing can be said about a gain",
            ],
        ),
        (started, ["still going on: its last step is warmup 7"]),
        (
            interrupted,
            [
                "This run was interrupted: its last step is grpo 3.",
                "Not logged, so not shown: Sampled accuracy, Answered",
            ],
        ),
        (
            stopped,
            [
                "This run was stopped: its last step is grpo 9.",
                "Training stops. 1. Warm up.",
                "They acted at 1 of 1 steps: stop once, first at step 9.",
                "The last line of rollouts.jsonl was cut off",
            ],
        ),
        (
            odd,
            [
                "A model that the run does not name was trained on an environment",
                "unscored: the machine failed",
                "This task was not played after the training.",
                "(no question was recorded)",
            ],
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_a_run_lacks_is_said_in_words(
    tmp_path: Path, leave: Callable[[Run], None], words: list[str]
) -> None:
    run = Run.create(tmp_path / "run", {"reproducibility": "none"})
    leave(run)

    text = Page(write_report(run)).text

    assert [each for each in words if each not in text] == []


def test_a_run_that_a_process_is_writing_says_how_far_it_is(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    run.log_metrics({"phase": "grpo", "step": 3, "reward": 0.5})

    with run.held():
        text = Page(write_report(run)).text

    assert "A process is writing this run just now: it is at grpo 3." in text


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs at least one run"):
        write_report([])


def evaluated(folder: Path, before: list[bool], after: list[bool]) -> RunView:
    run = Run.create(folder, {})
    for phase, right in (("before", before), ("after", after)):
        run.log_rollouts(episode(n, phase, was) for n, was in enumerate(right))
    return views([run])[0]


def test_the_open_tasks_follow_the_printed_rule_and_the_others_come_in_order(
    tmp_path: Path,
) -> None:
    view = evaluated(
        tmp_path / "run", [True, False, False, True, False], [False, False, True, True, True]
    )

    found = transcripts.transcripts([view], 5)

    stories = ["wrong before, right after", "right before and after", "right before, wrong after"]
    stories += ["wrong before and after", "wrong before, right after"]
    assert [task.story for task in found.tasks] == stories
    assert [task.task_id[-1] for task in found.tasks] == ["2", "3", "0", "1", "4"]
    assert [task.is_chosen for task in found.tasks] == [True, True, True, False, False]
    assert len({task.anchor for task in found.tasks}) == 5
    few = transcripts.transcripts([view], 1)
    assert ([task.is_chosen for task in few.tasks], few.played) == ([True] * 3, 5)


def test_episodes_of_several_runs_stand_side_by_side(tmp_path: Path) -> None:
    one = evaluated(tmp_path / "one", [False, True], [True, True])
    two = replace(evaluated(tmp_path / "two", [False], [False]), style=1)

    first, second = transcripts.transcripts([one, two], 10).tasks

    assert [(c.run.label, c.when) for c in first.columns] == [
        *(("one", "before"), ("one", "after"), ("two", "before"), ("two", "after")),
    ]
    assert first.story == "one: wrong before, right after; two: wrong before and after"
    assert [c.run.label for c in second.columns] == ["one", "one"]


def test_an_episode_that_is_too_long_for_a_page_leaves_out_those_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = evaluated(tmp_path / "run", [True] * 6, [True] * 6)
    monkeypatch.setattr(transcripts, "ROOM", 1)

    found = transcripts.transcripts([view], 6)

    assert ([task.is_chosen for task in found.tasks], found.played) == ([True] * 3, 6)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"accuracy": 0.5, "interval": [0.4, 0.6]}, "10.0 % to 50.0 %. The 95 % intervals do not"),
        ({"accuracy": 0.2, "interval": [0.12, 0.3]}, "so this may be chance"),
        ({"accuracy": 0.2}, "nothing says whether that is more than chance"),
    ],
)
def test_without_a_sentence_of_its_own_a_gain_is_judged_by_the_intervals(
    tmp_path: Path, after: dict[str, Any], words: str
) -> None:
    run = Run.create(tmp_path / "run", {})
    run.write_summary({"before": {"accuracy": 0.1, "interval": [0.05, 0.2]}, "after": after})

    assert words in tables.gain(views([run])[0])


def test_a_step_that_was_logged_twice_counts_as_it_was_logged_last() -> None:
    records = [{"step": 2, "kl": 5.0}, {"step": 1, "kl": math.nan}, {"step": 2, "kl": 1.0}]

    assert charts.curve(records, "kl") == charts.Curve((1, 2), (None, 1.0))
    assert charts.curve(records, "entropy") is None


def test_the_command_writes_the_page_and_says_where(tmp_path: Path) -> None:
    run, out = synthetic_run(tmp_path / "run", steps=2, played=2), tmp_path / "page.html"

    done = run_here("report", run.path, "--out", out)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{out}\n", "")
    assert Page(out).open == []
