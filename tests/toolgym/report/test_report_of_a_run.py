"""What a report shows of that which only a family understands, and where one counts nothing."""

import json

import gymnasium as gym
import pytest

from tests.toolgym.report.synthetic_run import Page, synthetic_run
from toolgym import Task, TaskSet, ToolEnv, policies, rollout, tool
from toolgym.family import TaskFamily
from toolgym.report import write_report
from toolgym.runs.run import Run
from toolgym.statistics import Statistics, Table, recorded_kwargs

CARDS = "written-tests/Cards-v0"
HOSTILE = "<script>alert(1)</script>"


class CardFamily(TaskFamily):
    """Counts suits."""

    def statistics(self, rollouts, top=10):
        said = [turn["calls"][0]["arguments"]["suit"] for r in rollouts for turn in r["turns"]]
        rows = tuple((suit, said.count(suit)) for suit in sorted(set(said)))
        columns = ("suit", "count")
        return Statistics(
            (
                Table("suits", "Suits", columns, rows),
                Table("more", "More suits", columns, rows),
                Table("none", "No suits", columns, ()),
            )
        )


class CardEnv(ToolEnv):
    """Name the suit of a card."""

    family = CardFamily()

    def __init__(self):
        super().__init__(TaskSet([Task("card", "Which suit?")], name="cards"))

    def begin(self, task):
        return task.question

    @tool(terminal=True)
    def name_suit(self, suit: str) -> str:
        """Name a suit.

        Args:
            suit: One of four.
        """
        return self.submit(suit == "hearts")


if CARDS not in gym.registry:
    gym.register(id=CARDS, entry_point=CardEnv)


def cards(path, *suits):
    run = Run.create(path, {"env_id": CARDS})
    for phase in ("before", "after"):
        said = [json.dumps({"name": "name_suit", "arguments": {"suit": suit}}) for suit in suits]
        played = [rollout.play(CARDS, policies.scripted([each])).to_json() for each in said]
        run.log_rollouts({"phase": phase, "step": None, **record} for record in played)
    return run


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "cards"
    return Page(write_report(cards(folder, "hearts", HOSTILE)))


def test_the_first_table_is_open_the_others_are_folded_and_empty_ones_left_out(page):
    written = page.source.split("<h2>What the agent wrote</h2>")[1].split("</section>")[0]

    assert "<details open><summary>Suits</summary>" in written
    assert "<details><summary>More suits</summary>" in written
    assert "No suits" not in written
    assert "hearts</th><td>2</td>" in written


def test_nothing_that_a_model_wrote_is_markup(page):
    assert page.open == []
    assert page.tags.count("script") == len(page.scripts) == 3
    assert "&lt;script&gt;" in page.source


def test_several_runs_have_each_what_was_written_in_them(tmp_path):
    runs = [cards(tmp_path / name, suit) for name, suit in (("a", "hearts"), ("b", "spades"))]
    page = Page(write_report(runs))
    written = page.source.split("<h2>What the agent wrote</h2>")[1].split("</section>")[0]

    assert written.count('<details class="run"') == 2
    assert written.index("hearts") < written.index("spades")


def test_a_family_that_counts_nothing_has_no_such_part(tmp_path):
    page = Page(write_report(synthetic_run(tmp_path / "explore", steps=2, played=2)))

    assert "What the agent wrote" not in page.text


def test_a_run_of_an_environment_that_is_not_installed_has_a_report_all_the_same(tmp_path):
    run = Run.create(tmp_path / "lost", {"env_id": "nobody/Knows-v0"})
    run.log_rollouts([{"phase": "after", "step": None, "turns": [], "correct": True}])

    assert "What the agent wrote" not in Page(write_report(run)).text


@pytest.mark.parametrize(
    ("config", "kwargs"),
    [
        ({}, None),
        ({"settings": "all"}, None),
        ({"settings": {"env_kwargs": {"kind": "qa"}}}, {"kind": "qa"}),
    ],
)
def test_what_an_environment_was_made_with_is_read_from_the_settings(config, kwargs):
    assert recorded_kwargs(config) == kwargs
