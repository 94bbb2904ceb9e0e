"""A notebook shows a run and an evaluation as small tables, in which data is text and no markup."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgym import EpisodeRecord, Evaluation, rollout
from toolgym.notebook import MOST_CHARS, facts_table
from toolgym.runs.run import Run
from toolgym.sanitize import visible

OURS = {"div", "b", "table", "tr", "th", "td"}
HOSTILE = ("<script>alert(1)</script>", "</td></table>", "<!--", "&lt;", "&#x3c;", '" onload="x')
anything = st.lists(
    st.one_of(st.text(st.characters(exclude_categories=())), st.sampled_from(HOSTILE)), max_size=6
).map("".join)
"""Texts with lone surrogates, control characters and markup."""
SCRIPT = "<script>alert('x')</script>\ud800\x1b & $x$"
ESCAPED = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;\ufffd\u241b &amp; $x$"


class Read(HTMLParser):
    """What a browser finds in a page: the tags, and the text of each cell of a table."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert [name for name, _ in attrs if name not in ("style", "class")] == []
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = tag not in ("td", "th") and self.inside

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = unknown_decl = handle_pi = handle_comment


@settings(max_examples=40)
@given(anything, anything)
def test_a_text_is_read_back_as_it_was_but_for_what_a_page_cannot_hold(name, value):
    name, value = name[:MOST_CHARS], value[:MOST_CHARS]
    page = facts_table(value, [(name, value), ("none", None)])

    read = Read(page)
    assert read.cells == [visible(name), visible(value)]
    assert set(read.tags) <= OURS
    page.encode("utf-8")


@pytest.fixture(scope="module")
def episode() -> EpisodeRecord:
    return rollout.play("sqlgym/Explore-v0", "expert", seed=10)


def hostile_run(folder: Path, text: str) -> Run:
    run = Run.create(folder, {"env_id": text, "dataset": {text: [text]}, "model": text})
    figures = {"accuracy": 0.5, "interval": [0.25, 0.75]}
    evaluations = [{"name": text, "before": figures, "after": figures}] * 20
    run.write_summary({"status": text, "trainer": text, "evaluations": [3, *evaluations]})
    return run


@pytest.mark.parametrize("kind", ["run", "evaluation"])
def test_hostile_text_is_escaped_and_cut(episode, tmp_path, kind):
    def page(text):
        if kind == "run":
            return hostile_run(tmp_path / "run", text)._repr_html_()
        return Evaluation((replace(episode, env_id=text),))._repr_html_()

    shown, long = page(SCRIPT), page("<&'>" * 1_000)

    assert set(Read(shown).tags) <= OURS
    assert ESCAPED in shown
    assert "more characters" in long
    assert len(long) < 40_000
    (shown + long).encode("utf-8")


def test_an_evaluation_shows_its_figures(episode):
    wrong = replace(episode, correct=False, score=0.0, number=1)
    lost = replace(episode, scored=False, correct=False, score=float("nan"))
    evaluation = Evaluation(
        (replace(episode, number=0), wrong, lost),
        k=2,
        refused=({"task_id": "t", "code": "c", "reason": "r"},),
    )

    page = evaluation._repr_html_()
    cells = Read(page).cells
    told = dict(zip(cells[::2], cells[1::2], strict=True))

    low, high = evaluation.interval
    assert "Evaluation of sqlgym/Explore-v0" in page
    assert told["accuracy"] == f"0.500, 95 % interval {low:.3f} to {high:.3f}"
    assert told["pass@1"] == told["accuracy"]
    assert told["pass@2"].startswith("1.000, 95 % interval 0.")
    assert told["tries a task"] == "2"
    assert (told["episodes"], told["unscored"], told["tasks refused"]) == ("3", "1", "1")


def test_a_run_shows_what_was_trained_and_how_it_ended(tmp_path):
    run = Run.create(tmp_path / "young", {"env_id": "sqlgym/Explore-v0", "model": "tiny"})
    begun = Read(run._repr_html_()).cells
    before = {"accuracy": 0.125, "interval": [0.1, 0.2]}
    after = {"accuracy": 0.5, "interval": [0.4, 0.6]}
    run.write_summary({"status": "complete", "before": before, "after": after})
    page = run._repr_html_()
    ended = Read(page).cells

    assert begun == ["env_id", "sqlgym/Explore-v0", "model", "tiny", "status", "not ended"]
    assert "Run young" in page
    assert ended[4:] == [
        *("status", "complete"),
        *("accuracy, before", "0.125, 95 % interval 0.100 to 0.200"),
        *("accuracy, after", "0.500, 95 % interval 0.400 to 0.600"),
    ]
