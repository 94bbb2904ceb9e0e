"""A report shows all that a run left behind, says what is missing, and trusts no text.

`synthetic_run` writes a run as training would, with plausible numbers. To look at its page:
`python -c "import tests.toolgym.test_report as t; print(t.example_pages('somewhere'))"`.
"""

import math
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgym.errors import ConfigurationError
from toolgym.records import wilson_interval
from toolgym.report import axes, plot, series, tables, transcripts, write_report
from toolgym.runs import Run, reproducibility

HOSTILE = '<script>alert(1)</script> & "quotes" \'\x00\x1b\ud800\u202e </pre></td>'
STEPS = 60


def synthetic_run(folder: Path, *, seed: int = 0, learns: bool = True, steps: int = STEPS) -> Run:
    """A run whose numbers move as a tiny model's do; with `learns=False` as a control's do."""
    rng = random.Random(seed)
    config = {
        "env_id": "sqlgym/Explore-v0",
        "dataset": "tiny",
        "model": "the tiny model (1.1 M parameters)",
        "trainer": "trl",
        "control": None if learns else "shuffled-rewards",
        "seed": seed,
        "grpo": {"learning_rate": 1e-3, "group": 8, "prompts": 8, "beta": 0.0, "steps": steps},
        "reproducibility": {**reproducibility(["pydantic", "numpy"]), "threads": 2},
    }
    run = Run.create(folder, config)
    for step in range(1, 151):
        loss = 0.12 + 3.1 * math.exp(-step / 22) + rng.gauss(0, 0.03)
        run.log_metrics({"phase": "warmup", "step": step, "loss": loss, "learning_rate": 2e-3})
    for step in range(1, steps + 1):
        run.log_metrics(grpo_numbers(rng, step, learns))
    ends = (0.125, 0.42 if learns else 0.13)
    evaluations = {
        phase: evaluation(run, rng, phase, share)
        for phase, share in zip(("before", "after"), ends, strict=True)
    }
    gain = "The model became more reliable at what it could do before; it learnt no new skill."
    run.write_summary(
        {
            "env_id": config["env_id"],
            "trainer": "trl",
            "model": config["model"],
            "seconds": 402.4,
            **evaluations,
            "gain": gain if learns else "No gain, as it must be without a signal.",
            "control": config["control"],
            "status": "complete",
        }
    )
    return run


def grpo_numbers(rng: random.Random, step: int, learns: bool) -> dict[str, Any]:
    done = (1 - math.exp(-step / 25)) if learns else 0.0
    dead = max(0.0, 0.1 + 0.25 * done + rng.gauss(0, 0.06))
    return {
        "phase": "grpo",
        "step": step,
        "reward": 0.2 + 0.35 * done + rng.gauss(0, 0.04),
        "reward_std": 0.3 - 0.1 * done + rng.gauss(0, 0.02),
        "dead_groups": min(1.0, dead),
        "zero_variance_groups": min(1.0, dead * 0.4),
        "entropy": 0.42 - 0.2 * done + rng.gauss(0, 0.015),
        "kl": None if step == 1 else 0.04 * done * step / 20 + abs(rng.gauss(0, 0.004)),
        "grad_norm": 0.6 + rng.gauss(0, 0.12),
        "accuracy": min(1.0, max(0.0, 0.13 + 0.3 * done + rng.gauss(0, 0.05))),
        "answered": min(1.0, 0.93 + 0.05 * done + rng.gauss(0, 0.015)),
        "validity": min(1.0, 0.86 + 0.12 * done + rng.gauss(0, 0.015)),
        "repairs_per_call": max(0.0, 0.3 - 0.25 * done + rng.gauss(0, 0.03)),
        "tool_failures": max(0.0, 0.12 - 0.09 * done + rng.gauss(0, 0.02)),
        "completion_length": 118 - 20 * done + rng.gauss(0, 4),
    }


def evaluation(run: Run, rng: random.Random, phase: str, accuracy: float) -> dict[str, Any]:
    right = [rng.random() < accuracy for _ in range(192)]
    records = [episode(number, phase, was_right) for number, was_right in enumerate(right)]
    run.log_rollouts(records)
    return {
        "accuracy": sum(right) / 192,
        "interval": list(wilson_interval(sum(right), 192)),
        "validity": 0.87 if phase == "before" else 0.975,
        "mean_score": sum(record["score"] for record in records) / 192,
        "episodes": 192,
    }


def episode(number: int, phase: str, right: bool, text: str = "") -> dict[str, Any]:
    """One record as `EpisodeRecord.to_json` makes it; `text` is put wherever a model could."""
    sql = f"SELECT count(*) FROM singer WHERE age > {20 + number}{text}"
    written = f'<tool_call>{{"name": "query", "arguments": {{"sqll": "{sql}", "limit": null}}}}'
    table = "name | age | country\n" + "\n".join(f"singer {i} | {i} | Norway" for i in range(30))
    turns = [
        turn(
            "describe", {"table_name": "singr"}, f"error[unknown_table]: no 'singr'.{text}", -0.03
        ),
        turn("sample", {"table_name": "singer"}, table + text, 0.07),
        turn("query", {"sql": sql}, f"count(*)\n{number}{text}", 0.2, written + text),
        turn("answer", {"value": number if right else text or 7}, "The episode is over.", 0.7),
    ]
    turns[0] |= {"errors": ["unknown_table"], "valid": False}
    turns[2]["repairs"] = ["renamed_key", "dropped_null"]
    answered = right or number % 9 > 0
    return {
        "phase": phase,
        "step": None,
        "env_id": "sqlgym/Explore-v0",
        "task_id": f"dev/concert/{number}{text}",
        "seed": number,
        "question": f"How many singers are older than {20 + number}?{text}",
        "turns": turns if answered else [*turns[:2], turn("", {}, f"No call.{text}", -0.02, "hm")],
        "score": 0.945 if right else 0.32,
        "correct": right,
        "scored": True,
        "answered": answered,
        "progress_bin": 10 if right else 4,
        "reward_parts": {"outcome": float(right), "progress": 0.0, "step": -0.03, "repeat": -0.025},
    }


def turn(
    name: str, arguments: dict[str, Any], observation: str, reward: float, action: str = ""
) -> dict[str, Any]:
    calls = [{"name": name, "arguments": arguments}] if name else []
    return {
        "action": action or (transcripts.json.dumps(calls[0]) if calls else ""),
        "calls": calls,
        "observation": observation,
        "reward": reward,
        "repairs": [],
        "errors": [],
        "valid": bool(calls),
    }


def example_pages(folder: str) -> list[Path]:
    """The pages of a run, of a run beside its control, and of an interrupted one, to look at."""
    run = synthetic_run(Path(folder) / "explore")
    control = synthetic_run(Path(folder) / "control", seed=1, learns=False)
    cut = Run.create(Path(folder) / "cut", {"env_id": "sqlgym/Explore-v0"})
    for step in range(1, 4):
        cut.log_metrics(grpo_numbers(random.Random(step), step, True))
    return [write_report(run), write_report([run, control]), write_report(cut)]


class Page(HTMLParser):
    """What a browser would see: its text, its tags and attributes, and what was never closed."""

    VOID = ("meta", "br", "hr", "img", "input", "link")

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.source = file.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"] and data.strip():
            self.text += " " + " ".join(data.split())

    def plots(self) -> list[str]:
        return re.findall(r'<svg class="plot".*?</svg>', self.source, re.S)


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
    titles = re.findall(r"<h3>(.*?)</h3>", page.source)
    assert titles == [
        *("Held-out accuracy", "Reward", "Sampled accuracy", "Validity"),
        *("Groups that teach nothing", "Answered", "Repairs per call", "Entropy", "KL divergence"),
        *("Gradient norm", "Failed calls", "Completion length", "Warm-up loss"),
        "How episodes ended",
    ]
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


def test_runs_are_laid_over_each_other_with_a_legend(run: Run, tmp_path: Path) -> None:
    control = synthetic_run(tmp_path / "control", seed=1, learns=False)

    page = Page(write_report([run, control], tmp_path))

    assert (tmp_path / "report.html").is_file()
    assert "sqlgym/Explore-v0: 2 runs" in page.text
    reward = next(svg for svg in page.plots() if "<title>Reward</title>" in svg)
    assert reward.count('class="line"') == 2
    assert reward.count('class="band"') == 2
    assert "explore: from" in reward
    assert "control (shuffled rewards): from" in reward
    titles = re.findall(r"<h3>(.*?)</h3>", page.source)
    assert {"Dead groups", "Zero-variance groups"} < set(titles)
    assert re.findall(r'<tr class="differs"><th scope="row">(\w+)', page.source) == [
        "control",
        "seed",
    ]


def test_runs_of_one_name_are_told_apart_and_the_page_lies_beside_the_first(tmp_path: Path) -> None:
    runs = [synthetic_run(tmp_path / parent / "run", steps=2) for parent in ("a", "b")]

    file = write_report(runs)

    assert file == tmp_path / "a" / "report.html"
    assert {"a/run", "b/run"} < set(Page(file).text.split())


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
    yield stopped, "Not logged, so not shown: Sampled accuracy, Validity"
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

    assert series.curve(records, "kl") == series.Curve((1, 2), (None, 1.0))
    assert series.curve(records, "entropy") is None


NUMBERS = st.none() | st.floats() | st.floats(-1, 2) | st.integers(-(10**9), 10**9).map(float)
TEXTS = st.text(st.characters(codec=None), max_size=12)


def places(svg: str) -> list[float]:
    """Every coordinate; the text must be XML for it."""
    values: list[str] = []
    for node in ElementTree.fromstring(svg).iter():
        values += [
            v for k, v in node.attrib.items() if k in ("x", "y", "x1", "x2", "y1", "y2", "cx")
        ]
        values += re.findall(r"-?\d[\d.e+]*", node.attrib.get("d", ""))
    return [float(value) for value in values]


@given(
    values=st.lists(NUMBERS, min_size=1, max_size=12),
    text=TEXTS,
    unit=st.sampled_from(["share", "number"]),
)
def test_any_numbers_and_any_text_make_a_line_plot_inside_its_box(
    values: list[float | None], text: str, unit: axes.Unit
) -> None:
    steps = range(1, len(values) + 1)
    low, high = series.band(values, values)
    lines = [plot.Line(text, 0, steps, values, values, low, high), plot.Line(text, 1, [3.0], [1.0])]

    svg = plot.line_plot(lines, text, text, text, unit)

    assert all(-20 <= place <= axes.WIDTH for place in places(svg))


@given(
    points=st.lists(st.none() | st.tuples(*[st.floats(0, 1)] * 3), min_size=2, max_size=2),
    heights=st.lists(st.none() | st.floats(-1e9, 1e9), min_size=2, max_size=2),
    text=TEXTS,
)
def test_any_intervals_and_bars_are_drawn_inside_their_box(
    points: list[tuple[float, float, float] | None], heights: list[float | None], text: str
) -> None:
    shown = [None if point is None else plot.Point(*point) for point in points]
    drawn = (
        plot.point_plot([plot.Points(text, 0, shown)] * 2, ["a", text], text, text, "share"),
        plot.bar_plot([plot.Bars(text, 7, heights)], [text, "b"], text, text),
    )

    for svg in drawn:
        assert all(-20 <= place <= axes.WIDTH + 10 for place in places(svg))


@given(
    values=st.lists(st.floats(-1e12, 1e12), max_size=6), unit=st.sampled_from(["share", "number"])
)
def test_an_axis_shows_every_value_between_two_to_eight_ticks(
    values: list[float], unit: axes.Unit
) -> None:
    axis = axes.upward(values, unit)

    assert 2 <= len(axis.ticks()) <= 8
    hair = 1e-6 * (axis.high - axis.low)
    beyond = [v for v in values if not axis.low - hair <= v <= axis.high + hair]
    assert [v for v in beyond if unit == "number" or 0 <= v <= 1] == []
    texts = [axes.number_text(tick, axis.step, unit) for tick in axis.ticks()]
    assert len(set(texts)) == len(texts)


def test_a_gap_cuts_a_line_and_a_lone_value_is_a_dot() -> None:
    svg = plot.line_plot([plot.Line("kl", 0, [1, 2, 3, 4], [1, 2, None, 3])], "t", "d", "step")

    (path,) = re.findall(r'class="line" d="([^"]*)"', svg)
    assert re.fullmatch(r"M[\d. ]+ L[\d. ]+ M[\d. ]+ h0", path)


def test_settings_are_flat_and_say_where_runs_differ() -> None:
    rows = tables.settings([{"a": {"b": 1, "c": "x"}, "d": []}, {"a": {"b": 2, "c": "x"}}])

    assert [(row.key, row.values, row.differs) for row in rows] == [
        ("a.b", ["1", "2"], True),
        ("a.c", ["x", "x"], False),
        ("d", ["[]", tables.NOTHING], True),
    ]


COMMAND = """
import typer, sys
from toolgym.commands.report import command
from toolgym.errors import ConfigurationError
app = typer.Typer(add_completion=False)
app.command()(command)
app()
"""


def test_the_command_writes_the_page_and_says_where(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "page.html"

    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(run.path), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{out}\n", "")
    assert Page(out).open == []


def test_the_command_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    from toolgym.commands.report import command

    with pytest.raises(ConfigurationError, match="There is no run folder"):
        command([tmp_path / "nowhere"])
