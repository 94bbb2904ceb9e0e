"""The pictures of a set of rollouts: what they show, what they escape, and when there is none."""

import random
from html.parser import HTMLParser

import pytest

from aflowgym.dsl import parse
from aflowgym.envs.players import TYPICAL
from aflowgym.statistics.charts import (
    accuracy_chart,
    favourite_pictures,
    favourites_chart,
    shorten,
    time_charts,
)
from aflowgym.statistics.counts import Gathered, moments
from aflowgym.statistics.tables import workflow_statistics
from aflowgym.statistics.workflows import readings
from tests.toolgym.report.synthetic_run import rows_of
from toolgym.report.page import write_statistics_page

FOUR = ("Custom", "Programmer", "Custom -> Review ? Revise : done", "AnswerGenerate")


def line(phase, step, text):
    turn = {
        "action": text,
        "calls": [{"name": "run_workflow", "arguments": {"dsl": text}}],
        "observation": "",
        "errors": [],
    }
    return {"phase": phase, "step": step, "turns": [turn], "correct": False, "scored": True}


def labels(chart):
    return [entry.label for entry in chart.drawing.entries]


def values(chart, mark):
    """The data of all layers whose mark is of a kind."""
    return rows_of(chart.drawing.spec, mark)


def gathered(lines):
    return Gathered(readings(lines))


@pytest.fixture(scope="module")
def found():
    rng = random.Random(5)
    lines = [line("before", None, text) for text in FOUR]
    lines += [
        line("grpo", step, "Custom" if rng.random() < step / 40 else rng.choice(FOUR))
        for step in range(1, 41)
        for _ in range(8)
    ]
    return lines + [line("after", None, "Custom") for _ in range(4)]


def test_the_favourites_stand_in_their_order_with_a_bar_before_and_one_after(found):
    (chart,) = favourites_chart(gathered(found), top=3)

    shown = [row[0] for row in chart.drawing.rows]
    assert shown[0] == "Custom"
    assert len(shown) == 3
    assert labels(chart) == ["before", "after"]
    assert chart.has_legend
    bars = values(chart, "bar")
    assert len(bars) == 6
    assert "after: 100.0 % [51.0, 100.0] (4 of 4)" in [bar["tip"] for bar in bars]


@pytest.mark.nightly
def test_the_course_tells_in_words_where_it_began_and_ended(found):
    course, entropy = time_charts(moments(gathered(found)))

    assert "diversity: from 100 % to 0 %" in course.drawing.words
    assert "share of the favourite: from 25 % to 100 %" in course.drawing.words
    assert "entropy: from 1.39 to 0.00" in entropy.drawing.words
    assert labels(course)[0] == "with a valid workflow"
    assert values(course, "area")


class Strict(HTMLParser):
    """A reader that minds whether everything that opens is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.integration
def test_a_page_escapes_what_a_model_wrote_and_closes_what_it_opens(tmp_path):
    hostile = 'Custom("<script>alert(1)</script>")'
    statistics = workflow_statistics([line("grpo", step, hostile) for step in (1, 2)])
    page = write_statistics_page("<b>run", "A & b.", statistics, tmp_path / "new" / "page.html")
    reader = Strict()
    reader.feed(page.read_text(encoding="utf-8"))

    assert reader.open == []
    assert reader.scripts == 3  # the data, the library, the page's own
    assert "&lt;script&gt;" in page.read_text(encoding="utf-8")


def test_a_shortened_name_is_still_the_same_workflow():
    for text in [
        *TYPICAL,
        "[Custom, Custom -> Format, Custom -> Format] -> ScEnsemble",
        "[Custom -> Custom, Custom] -> ScEnsemble",
        "[Custom, CustomCodeGenerate, Custom, Custom] -> ScEnsemble",
        '[Custom("a, a, a"), Custom] -> ScEnsemble',
    ]:
        canonical = str(parse(text).workflow)

        assert str(parse(shorten(canonical)).workflow) == canonical, text
        assert len(shorten(canonical)) <= len(canonical), text


def with_kind(phase, text, kind, correct, calls):
    made = line(phase, None, text)
    made["turns"][0]["observation"] = f"Took {calls} calls of the model, 9 tokens."
    return made | {"question": f"How much?\nKind: {kind}.", "correct": correct}


@pytest.fixture(scope="module")
def moved():
    """Two kinds of task, of which one is learnt."""
    return gathered(
        with_kind(phase, text, kind, correct, calls)
        for kind, phase, text, correct, calls in (
            ("math", "before", "Custom", False, 1),
            ("math", "after", "Programmer", True, 3),
            ("math", "after", "Programmer", False, 2),
            ("qa", "before", "Custom", True, 1),
            ("qa", "grpo", "Custom -> Format", True, 2),
            ("qa", "after", "Custom", True, 1),
        )
    )


@pytest.mark.nightly
def test_accuracy_and_calls_are_told_for_each_kind_before_and_after(moved):
    (chart,) = accuracy_chart(moved)

    assert labels(chart) == ["math", "qa"]
    words = ["math: before 0.0% with 1.0 calls, after 50.0% with 2.5 calls"]
    words += ["qa: before 100.0% with 1.0 calls, after 100.0% with 1.0 calls"]
    assert chart.drawing.words == "; ".join(words)
    marks = [row["mark"] for row in chart.drawing.spec["data"]["values"]]
    assert marks == ["ring", "disc"] * 2
    assert "Ring: before the training; disc: after it." in chart.note
    assert "Diamond" not in chart.note


@pytest.mark.nightly
def test_the_favourite_of_each_kind_is_drawn_before_and_after(moved):
    drawn = favourite_pictures(moved)

    assert [chart.title for chart in drawn] == [
        *("math, before", "math, after", "qa, before", "qa, after"),
    ]
    assert "Workflow: Programmer" in drawn[1].picture
    assert drawn[1].note == "100.0 % [34.2, 100.0] of the valid workflows."
