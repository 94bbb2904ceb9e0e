"""A report shows all that a run left behind, says what is missing, and trusts no text."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.toolgym.commands.command_line import run_here
from tests.toolgym.report.synthetic_run import Page, episode, synthetic_run
from toolgym.errors import ConfigurationError
from toolgym.report import charts, transcripts, write_report
from toolgym.runs.run import Run

HOSTILE = '<script>alert(1)</script> & "quotes" \'\x00\x1b\ud800\u202e </pre></td>'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return synthetic_run(tmp_path_factory.mktemp("runs") / "explore")


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


def test_every_plot_has_a_name_for_who_cannot_see_it(page: Page) -> None:
    titles = re.findall(r"<h3>(.*?)</h3>", page.source)
    assert len(page.plots()) == len(titles)


def test_the_page_is_whole_and_asks_nobody_for_anything(page: Page) -> None:
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href") or name[:2] == "on"]
    assert "default-src 'none'" in page.source
    assert not re.search(r"url\(|@import|https?://", page.source)


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

    for runs in (run, [run, synthetic_run(tmp_path / "other", steps=2)]):
        page = Page(write_report(runs, tmp_path / "page.html"))

        assert page.open == []
        assert "script" not in page.tags
        assert page.text.count("<script>alert(1)</script>") > 20
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", page.source)


def pieces(folder: Path) -> Iterator[tuple[Run, str]]:
    """Runs that lack something, each with the words that say so."""
    yield Run.create(folder / "empty", {}), "There are no metrics"
    yield Run.create(folder / "empty", {}), "it has no steps"
    yield Run.create(folder / "empty", {}), "No episode of an evaluation was recorded"
    yield Run.create(folder / "empty", {}), "No such record was written"
    yield Run.create(folder / "empty", {}), "Nothing can be said about a gain"
    started = Run.create(folder / "started", {})
    started.log_metrics({"phase": "warmup", "step": 7, "loss": None})
    yield started, "still going on: its last step is warmup 7"
    stopped = Run.create(folder / "stopped", {"model": "a model"})
    stopped.log_metrics({"phase": "grpo", "step": 3, "reward": 0.5})
    stopped.write_summary({"status": "interrupted", "before": {"accuracy": 0.5, "episodes": 4}})
    yield stopped, "This run was interrupted: its last step is grpo 3."
    yield stopped, "Not logged, so not shown: Sampled accuracy, Answered"
    ended = Run.create(folder / "ended", {})
    ended.log_metrics({"phase": "grpo", "step": 9, "guard_severity": 5})
    ended.write_summary({"status": "stopped", "diagnosis": "Training stops.\n1. Warm up."})
    yield ended, "This run was stopped: its last step is grpo 9."
    yield ended, "Training stops. 1. Warm up."
    yield ended, "They acted at 1 of 1 steps: stop once, first at step 9."
    torn = Run.create(folder / "torn", {})
    (torn.path / "rollouts.jsonl").write_text('{"phase": "bef')
    yield torn, "The last line of rollouts.jsonl was cut off"
    half = Run.create(folder / "half", {})
    half.log_rollouts([{"phase": "before"}, episode(2, "before", False)])
    yield half, "This task was not played after the training."
    yield half, "(no question was recorded)"
    odd = Run.create(folder / "odd", {"reproducibility": "none"})
    odd.write_summary({"before": 3, "after": {"accuracy": None, "interval": [1]}, "seconds": "x"})
    yield odd, "A model that the run does not name was trained on an environment"
    strange = {"phase": "after", "turns": [3, {"calls": ["x"], "errors": [None]}], "scored": False}
    odd.log_rollouts([{**strange, "reward_parts": [1]}])
    yield odd, "unscored: the machine failed"


def test_what_is_missing_is_said_in_words(tmp_path: Path) -> None:
    for run, words in pieces(tmp_path):
        assert words in Page(write_report(run)).text


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs at least one run"):
        write_report([])


def test_the_tasks_shown_follow_the_printed_rule() -> None:
    before = [episode(n, "before", right) for n, right in enumerate([True, False, False, True])]
    after = [episode(n, "after", right) for n, right in enumerate([False, False, True, True])]

    shown = transcripts.choose(before, after)

    stories = ["wrong before, right after", "right before and after", "right before, wrong after"]
    assert [task.story for task in shown] == stories
    assert [task.task_id[-1] for task in shown] == ["2", "3", "0"]
    assert [t.task_id[-1] for t in transcripts.choose(before[3:], after[3:])] == ["3"]
    apart = transcripts.choose(before[:1], after[1:2])
    assert [(task.before is None, task.after is None) for task in apart] == [
        (False, True),
        (True, False),
    ]


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

    assert words in Page(write_report(run)).text


def test_a_step_that_was_logged_twice_counts_as_it_was_logged_last() -> None:
    records = [{"step": 2, "kl": 5.0}, {"step": 1, "kl": math.nan}, {"step": 2, "kl": 1.0}]

    assert charts.curve(records, "kl") == charts.Curve((1, 2), (None, 1.0))
    assert charts.curve(records, "entropy") is None


def test_the_command_writes_the_page_and_says_where(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "page.html"

    done = run_here("report", run.path, "--out", out)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{out}\n", "")
    assert Page(out).open == []


def test_the_command_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    from toolgym.commands.report import command

    with pytest.raises(ConfigurationError, match="There is no run folder"):
        command([tmp_path / "nowhere"])
