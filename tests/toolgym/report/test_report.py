"""A report shows what a run left behind, says what is missing, and trusts no text."""

import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolgym.report.synthetic_run import Page, episode, synthetic_run
from toolgym.report import transcripts, write_report
from toolgym.report.view import views
from toolgym.runs.run import Run

HOSTILE = '<script>alert(1)</script> & "quotes" \'\x00\x1b\ud800\u202e </pre></td>'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return synthetic_run(tmp_path_factory.mktemp("runs") / "explore", played=24)


@pytest.fixture(scope="module")
def page(run: Run) -> Page:
    return Page(write_report(run))


def test_the_table_holds_both_evaluations(run: Run, page: Page) -> None:
    for when in ("before", "after"):
        figures = run.summary[when]
        low, high = (f"{100 * end:.1f}" for end in figures["interval"])
        accuracy = f"{100 * figures['accuracy']:.1f}"
        row = f"{when} 24 episodes {accuracy} % {low} to {high} %"
        assert row in page.text


def test_the_table_states_the_usage_of_the_models_of_the_environment(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    usage = {"episodes": 4, "calls": 10, "tokens_in": 30, "tokens_out": 10, "dollars": 0.5}
    run.write_summary({"after": {"accuracy": 0.5, "episodes": 4, "env_usage": usage}})

    told = "2.5 calls and 10 tokens per episode, $0.5000 in total"
    assert f"4 episodes, models of the environment: {told}" in Page(write_report(run)).text


def test_a_long_run_is_drawn_with_few_points(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    lines = [json.dumps({"phase": "grpo", "step": n, "reward": n}) for n in range(1, 1_001)]
    (run.path / "metrics.jsonl").write_text("\n".join(lines) + "\n")

    page = Page(write_report(run))

    rows = page.plots["Reward"]["data"]["values"]
    assert len(rows) == 250
    assert rows[-1] == {"series": "reward", "step": 1_000, "value": 998.5}
    assert "Each point is the mean of 4 steps." in page.text


def test_the_page_is_whole_and_loads_nothing(page: Page) -> None:
    assert page.open == []
    assert not {"link", "img", "iframe", "object", "base"} & set(page.tags)
    links = [value for name, value in page.attributes if name in ("src", "href")]
    assert all(link.startswith("#") for link in links)
    assert not [name for name, _ in page.attributes if name[:2] == "on"]
    assert not re.search(r"url\(|@import", page.source.split("</style>")[0])


def assert_that_the_policy_allows_its_two_scripts_and_nothing_else(page: Page) -> None:
    (policy,) = [value for name, value in page.attributes if value.startswith("default-src")]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    _, *scripts = page.scripts
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "script-src": " ".join(f"'sha256-{each}'" for each in hashes),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(scripts) == 2


def test_the_policy_allows_the_two_scripts_of_the_page_and_nothing_else(page: Page) -> None:
    assert_that_the_policy_allows_its_two_scripts_and_nothing_else(page)


@pytest.mark.integration
def test_vega_is_in_the_page_and_draws_every_plot(
    run: Run, tmp_path: Path, whole_pages: None
) -> None:
    vl_convert = pytest.importorskip("vl_convert")

    page = Page(write_report(run, tmp_path / "page.html"))

    assert page.open == []
    assert len(page.scripts[1]) > 100_000
    assert_that_the_policy_allows_its_two_scripts_and_nothing_else(page)
    for spec in page.plots.values():
        assert "</svg>" in vl_convert.vegalite_to_svg({**spec, "width": 400})


def test_without_vega_there_are_words_and_a_line_that_says_how_to_get_plots(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_pages: None
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    bare = Page(write_report(run, tmp_path / "page.html"))

    assert "run pip install 'toolgym[report]' , then run toolgym report again" in bare.text
    assert len(bare.scripts) == 2  # the data and the page's own
    assert re.search(r"entropy: [\d.]+ nats to [\d.]+ nats in 60 steps\.", bare.text)


def test_the_same_run_gives_the_same_bytes(run: Run, page: Page, tmp_path: Path) -> None:
    assert write_report(run, tmp_path / "new" / "page.html").read_text("utf-8") == page.source


def test_transcripts_show_calls_errors_repairs_and_reward_parts(page: Page) -> None:
    for shown in (
        'describe(table_name="singr")',
        "unknown_table",
        "repaired: renamed_key",
        "<tool_call>",
        "no call hm",
        "outcome +1.000",
        "reward -0.030",
    ):
        assert shown in page.text


def test_nothing_that_a_model_or_a_database_wrote_becomes_markup(tmp_path: Path) -> None:
    named = dict.fromkeys((HOSTILE, "env_id", "model", "control"), HOSTILE)
    run = Run.create(tmp_path / "<b>run", {**named, "reproducibility": {HOSTILE: [HOSTILE]}})
    run.log_metrics({"phase": "grpo", "step": 1, "reward": 1.0, "entropy": HOSTILE})
    for phase in ("before", "after"):
        records = [episode(number, phase, number > 0, HOSTILE) for number in range(3)]
        for record in records:
            record["turns"][1]["calls"][0]["name"] = HOSTILE
            record["turns"][1]["repairs"] = record["turns"][1]["errors"] = [HOSTILE]
            record["reward_parts"] = {HOSTILE: 1.0}
        run.log_rollouts(records)
    figures = dict.fromkeys(("interval", "episodes", "validity", "env_usage"), HOSTILE)
    figures |= {"accuracy": 0.5}
    evaluated = {"name": HOSTILE, "before": figures, "after": figures}
    run.write_summary({"gain": HOSTILE, "evaluations": [evaluated], "diagnosis": HOSTILE})
    finding = dict.fromkeys(("check", "level", "reason", "advice"), HOSTILE)
    (run.path / "preflight.json").write_text(json.dumps({"findings": [finding, 1, HOSTILE]}))

    for runs in (run, [run, synthetic_run(tmp_path / "other", steps=2, played=2)]):
        page = Page(write_report(runs, tmp_path / "page.html"))

        assert page.open == []
        assert page.tags.count("script") == len(page.scripts) == 3
        assert page.text.count("<script>alert(1)</script>") > 20
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", page.source)
        assert "<" not in page.scripts[0]
        assert "alert(1)" not in page.scripts[1] + page.scripts[2]


def meant(spec: Any, key: str = "") -> list[str]:
    """Every text of a specification that is not data, and so has a meaning for Vega."""
    if isinstance(spec, dict):
        inner = spec.items()
        return [
            t for k, v in inner if k not in ("values", "domain", "description") for t in meant(v)
        ]
    if isinstance(spec, list):
        return [text for each in spec for text in meant(each)]
    return [spec] if isinstance(spec, str) else []


def test_a_text_from_outside_is_data_of_a_plot_and_nothing_else(tmp_path: Path) -> None:
    plain, hostile = (
        [synthetic_run(tmp_path / folder / name, steps=12, played=2) for name in names]
        for folder, names in (("a", ("one", "two")), ("b", ("'] \" \\ datum", "__proto__")))
    )
    one, other = (Page(write_report(runs, tmp_path / "page.html")) for runs in (plain, hostile))
    assert [meant(plot) for plot in one.plots.values()] == [meant(p) for p in other.plots.values()]
    assert "datum" in json.dumps(list(other.plots.values()))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["check", "accuracy", "after", "calls", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def some(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any values under some of the keys."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(keys, ANY))


@pytest.mark.integration
@settings(max_examples=25, deadline=None)
@given(
    summary=some("status", "evaluations", "before", "after", "gain", "seconds"),
    preflight=some("verdict", "findings"),
    metrics=st.lists(some("reward", "reward_std", "entropy", "faults"), max_size=4),
    rollouts=st.lists(some("task_id", "question", "turns", "score", "reward_parts"), max_size=3),
    turn=some("calls", "action", "observation", "reward", "repairs", "errors"),
)
def test_files_of_any_content_have_a_page(
    summary: Any, preflight: Any, metrics: Any, rollouts: Any, turn: Any
) -> None:
    with TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", {"model": "m"})
        run.write_summary(summary)
        (run.path / "preflight.json").write_text(json.dumps(preflight))
        for step, record in enumerate(metrics, 1):
            run.log_metrics({**record, "phase": "grpo", "step": step})
        run.log_rollouts({"turns": [turn], **each, "phase": "after"} for each in rollouts)

        page = Page(write_report(run))

    assert page.open == []
    assert "Settings" in page.text


def empty(run: Run) -> None:
    """Nothing is logged."""


def started(run: Run) -> None:
    run.log_metrics({"phase": "sft", "step": 7, "loss": None})


def interrupted(run: Run) -> None:
    run.log_metrics({"phase": "grpo", "step": 3, "reward": 0.5})
    figures = {"accuracy": 0.5, "episodes": 4}
    run.write_summary({"status": "interrupted", "before": figures, "gain": "Accuracy rose."})


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
            ["Interrupted: before any step.", "No metrics were logged", "There is no evaluation"],
        ),
        (started, ["Interrupted: step 7 of SFT."]),
        (interrupted, ["Interrupted: step 3 of GRPO. Continue: toolgym", "before 4 episodes 50.0"]),
        (
            stopped,
            [
                "Stopped by the guards: step 9 of GRPO. Train anyway: toolgym train --resume",
                "Training stops. 1. Warm up.",
                "5 stop",
                "The last line of rollouts.jsonl was cut off",
            ],
        ),
        (odd, ["unscored (fault)", "(no question was recorded)", "no turn"]),
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
    assert "Accuracy rose" not in text


def test_a_run_that_preflight_refused_says_so_and_why(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {"env_id": "sqlgym/Explore-v0"})
    finding = {"check": "validity", "level": "no-go", "reason": "Few calls.", "advice": "Warm up."}
    (run.path / "preflight.json").write_text(
        json.dumps({"verdict": "no-go", "findings": [finding], "figures": {}})
    )
    run.write_summary({"status": "refused", "diagnosis": "preflight says no-go: Few calls."})

    refused = Page(write_report(run)).text
    run.write_summary({"status": "interrupted"})  # as with --no-preflight
    insisted = Page(write_report(run)).text

    assert "Refused by the preflight check, so GRPO did not start: before any step." in refused
    assert "--no-preflight Reasons validity" in refused
    assert "Few calls. Warm up." in refused
    assert "Refused" not in insisted
    assert "Preflight warnings validity : Few calls. Warm up." in insisted


def test_a_page_has_room_for_few_long_episodes_and_cuts_long_texts(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", {})
    turn = {"observation": "x" * 50_000, "calls": []}
    for number in range(9):
        run.log_rollouts([{"phase": "after", "task_id": str(number), "turns": [turn] * 40}])

    found = transcripts.transcripts(views([run], 9))

    assert (len(found.tasks), found.played) == (4, 9)
    assert found.tasks[0].episodes[0].turns[0].observation.endswith("x\n... 30,000 more characters")
