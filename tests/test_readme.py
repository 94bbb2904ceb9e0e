"""The README runs as printed, shows whole on a package page, and has the figures of its sources.

Its links are absolute, since a package page has no folder around it; the base of all of them is the
`Source` of `[project.urls]`.
"""

import ast
import doctest
import importlib
import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqlgym import load_tasks
from toolgym import registration
from toolgym.calls import FORMATS
from toolgym.intervals import wilson_interval
from toolgym.rewards import RewardConfig
from toolgym.runs import Run
from tools.make_readme_picture import DATA, PICTURE, kept, moving_mean, picture

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
PROSE = " ".join(TEXT.split())
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
SESSIONS = [block for block in BLOCKS if ">>>" in block]
SCRIPTS = [block for block in BLOCKS if ">>>" not in block]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
FILES = {f"{URLS['Source']}/blob/main/", f"{URLS['Source']}/tree/main/"}
IMAGES = URLS["Source"].replace("//github.com/", "//raw.githubusercontent.com/") + "/main/"
LINKS = re.findall(r"\]\(([^)\s]+)\)", TEXT)
DOCS = ROOT / "docs"
IN_WORDS = {10: "ten"}
SHOWN = json.loads(DATA.read_text(encoding="utf-8"))


def test_it_is_short_and_begins_with_picture_install_and_an_episode():
    lines = TEXT.splitlines()

    assert len(lines) <= 135
    head = "\n".join(lines[:40])
    assert head.index("![") < head.index("pip install toolgym") < head.index(SESSIONS[0])


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_prints_what_it_says(session):
    parsed = doctest.DocTestParser().get_doctest(session, {}, "README", str(README), 0)
    report: list[str] = []
    doctest.DocTestRunner().run(parsed, out=report.append)
    assert not report, "".join(report)


def test_the_example_has_five_statements_and_asks_the_question_that_it_quotes():
    (session,) = SESSIONS
    examples = doctest.DocTestParser().get_examples(session)

    assert len(examples) == 5
    names: dict[str, object] = {}
    for example in examples[:3]:
        exec(example.source, names)
    asked, tables, *_ = str(names["question"]).splitlines()
    assert f"*{asked}* asks this episode of a database with six tables" in PROSE
    assert len(tables.removeprefix("Tables: ").split(", ")) == 6


def imported(script: str) -> list[tuple[str, str]]:
    nodes = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", alias.name) for node in nodes for alias in node.names]


@pytest.mark.torch
@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_training_script_imports_is_there(script):
    """It needs weights from a hub, so it is not run here; `examples/trl_grpo.py` is."""
    pytest.importorskip("trl")
    assert imported(script)
    for module, name in imported(script):
        assert hasattr(importlib.import_module(module), name), (module, name)


def headings(page: Path) -> set[str]:
    """The anchors of a page, as they are made of its headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("link", sorted({*LINKS}))
def test_every_link_is_absolute_and_what_is_ours_is_there(link):
    if link == URLS["Documentation"]:
        return
    base = next((base for base in (*FILES, IMAGES) if link.startswith(base)), None)
    assert base, f"{link} begins neither with the Source of [project.urls] nor is it Documentation"
    path, _, anchor = link.removeprefix(base).partition("#")
    file = ROOT / path

    assert file.is_dir() if "/tree/" in base else file.is_file()
    assert not anchor or anchor in headings(file)
    assert (base == IMAGES) == (f"![{alt_text()}]({link})" in TEXT)


def alt_text() -> str:
    (found,) = re.findall(r"!\[([^]]+)\]", TEXT)
    return found


def test_it_renders_as_a_package_page_does():
    markdown = pytest.importorskip("readme_renderer.markdown", reason="needs the extra dev")
    page = markdown.render(TEXT)

    assert page is not None
    assert f'src="{IMAGES}docs/pictures/{PICTURE.name}"' in page
    assert page.count("<table>") == len(re.findall(r"^\|---", TEXT, re.M)) == 3
    assert {*re.findall(r'href="(?!#)([^"]+)"', page)} == {*LINKS} - page_images()
    assert "```" not in page
    assert "](" not in page


def page_images() -> set[str]:
    return {*re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)}


# The picture.


def test_the_picture_is_what_its_script_makes_of_what_was_kept():
    text = PICTURE.read_text(encoding="utf-8")

    assert text == picture(SHOWN)
    assert len(text) < 100_000
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "<script" not in text


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_episodes_of_the_picture_are_played_alike_today(when):
    episode = SHOWN["episodes"][when]
    env = registration.make(SHOWN["env_id"], dataset=SHOWN["dataset"], split="dev")
    asked, _ = env.reset(seed=episode["seed"], options={"task_id": episode["task_id"]})

    assert asked.startswith(episode["question"])
    for turn in episode["turns"]:
        observation, _, terminated, _, info = env.step(turn["action"])
        assert observation == turn["observation"]
    assert terminated
    assert info["correct"] is episode["correct"] is (when == "after")
    assert info["score"] == pytest.approx(episode["score"])


def test_what_the_picture_says_in_words_is_what_was_kept():
    before, after = (SHOWN["evaluations"]["unseen tasks, sampled"][w] for w in ("before", "after"))
    answers = [
        SHOWN["episodes"][when]["turns"][-1]["calls"][0]["arguments"]["value"]
        for when in ("before", "after")
    ]
    greedy = SHOWN["evaluations"]["unseen tasks"]["before"]["episodes"]

    assert "(answer {}, wrong) and after it (answer {}, right)".format(*answers) in alt_text()
    assert f"over {len(SHOWN['steps'])} steps of GRPO" in alt_text()
    shares = f"goes from {100 * before['accuracy']:.0f} % to {100 * after['accuracy']:.0f} %"
    assert f"on {greedy} unseen tasks it {shares}" in alt_text()


def test_the_moving_mean_counts_rollouts_and_not_steps():
    steps = [{"step": n, "accuracy": 0.0, "rollouts": 10} for n in range(1, 5)]
    steps.append({"step": 5, "accuracy": 1.0, "rollouts": 40})

    assert moving_mean(steps) == [(5, 0.5)]


def test_a_run_that_did_not_end_gives_no_picture(tmp_path):
    run = Run.create(tmp_path / "run", {"env_id": "sqlgym/Explore-v0"})

    with pytest.raises(ValueError, match="let it end first"):
        kept(run)


# Figures.


def rows_of(page: str, head: str) -> list[list[str]]:
    """The cells of the rows under a head, up to the first line that is no row."""
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = text.split(f"{head}\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


SEEDS = rows_of(
    "tiny-model.md", "| run | sampled: before | sampled: after | greedy: before | greedy: after |"
)
SHARE = re.compile(r"([\d.]+) %(?: \(([\d.]+) to ([\d.]+)\))?")
PLAYED = (384, 384, 192, 192)
"""Episodes behind each column of the table of seeds: two tries at 192 tasks, and one."""


def shares(row: list[str]) -> list[float]:
    return [float(SHARE.fullmatch(cell)[1]) for cell in row[1:]]


@pytest.mark.parametrize("row", [row for row in SEEDS if "of the ten" not in row[0]])
def test_every_share_of_a_seed_is_one_of_whole_episodes_with_its_interval(row):
    for cell, played in zip(row[1:], PLAYED, strict=True):
        share, low, high = SHARE.fullmatch(cell).groups()
        correct = round(float(share) * played / 100)

        assert f"{100 * correct / played:.1f}" == share
        if low:
            told = [f"{100 * end:.1f}" for end in wilson_interval(correct, played)]
            assert told == [low, high]


def test_the_summary_of_the_seeds_is_theirs():
    seeds = [shares(row) for row in SEEDS if row[0].startswith("seed ")]
    assert len(seeds) == 10
    for name, pick in (("lowest", min), ("highest", max)):
        (row,) = (shares(row) for row in SEEDS if row[0] == f"{name} of the ten")
        assert row == [pick(column) for column in zip(*seeds, strict=True)]
    (median,) = (shares(row) for row in SEEDS if row[0] == "median of the ten")
    for told, column in zip(median, zip(*seeds, strict=True), strict=True):
        middle = sorted(column)[4:6]
        assert told == pytest.approx(sum(middle) / 2, abs=0.1)
    assert f"the median goes from {median[0]} to {median[1]} % on unseen tasks" in PROSE


def test_the_picture_and_the_table_of_seeds_tell_of_one_run():
    (row,) = (shares(row) for row in SEEDS if row[0] == f"seed {SHOWN['seed']}")
    told = [
        round(100 * SHOWN["evaluations"][name][when]["accuracy"], 1)
        for name in ("unseen tasks, sampled", "unseen tasks")
        for when in ("before", "after")
    ]

    assert told[2:] == row[2:]
    assert told[:2] == pytest.approx(row[:2], abs=1)  # other bounds on the length of a turn


def test_the_verdicts_of_the_lab_are_counted_and_those_told_first_stand_below():
    page = (DOCS / "lab.md").read_text(encoding="utf-8")
    first, rest = (
        re.findall(r"^\|.*\| (confirmed|refuted|inconclusive) \| (\w+: .*) \|$", part, re.M)
        for part in page.split("<!-- results: begin -->")
    )
    counted = Counter(verdict for verdict, _ in rest)

    assert first
    assert {*first} <= {*rest}
    assert f"makes {len(rest)} predictions" in PROSE
    told = "{confirmed} are confirmed, {refuted} refuted and {inconclusive} inconclusive"
    assert told.format(**counted) in PROSE


def test_the_other_figures_are_those_of_the_program():
    asked = [task for split in ("train", "dev", "test") for task in load_tasks("bundled-3", split)]

    assert f"{len({task.item for task in asked})} databases with {len(asked):,} questions" in PROSE
    assert {*re.findall(r"(\d+) (?:call )?formats", PROSE)} == {str(len(FORMATS))}
    assert "stays between {:g} and {:g}".format(*RewardConfig().bounds) in PROSE
    operators = registration.make("aflowgym/Operate-v0").tools.keys() - {"answer"}
    assert f"{IN_WORDS[len(operators)]} operators" in PROSE


def test_the_table_of_environments_names_all_that_come_with_the_package():
    ours = [
        each for each in registration.tool_env_ids() if each.startswith(("sqlgym/", "aflowgym/"))
    ]

    assert sorted(re.findall(r"^\| \[`([\w/-]+)`\]", TEXT, re.M)) == ours
