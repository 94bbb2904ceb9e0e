"""The tables on workflows: those of the report on the P30 experiment, and what they must obey."""

import functools
import json
import math
import random
from collections import Counter
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aflowgym
from aflowgym.statistics.counts import Gathered, diversity, entropy, moments
from aflowgym.statistics.tables import workflow_statistics
from aflowgym.statistics.workflows import STRUCTURES, readings, structure
from toolgym.intervals import wilson_interval
from toolgym.records import EpisodeRecord
from toolgym.statistics import Share

# The ten patterns of the P30 experiment, each with its count and its structure.
P30 = {
    "Custom -> Programmer -> Review ? Revise : done": (115, "condition"),
    "Custom -> Programmer -> Review -> Revise": (69, "chain"),
    "Programmer": (47, "single operator"),
    "Custom -> Programmer": (21, "chain"),
    "Custom -> Programmer -> Review": (18, "chain"),
    "Programmer -> Review ? Revise : done": (13, "condition"),
    "Programmer -> Review -> Revise": (10, "chain"),
    "Custom": (8, "single operator"),
    "Programmer -> Review": (6, "chain"),
    "Custom -> Review ? Revise : done": (5, "condition"),
}
# Ten more, for the 14 valid workflows that its list of ten leaves out.
OTHERS = {
    "Custom -> Review": 3,
    "Custom -> Review -> Revise": 2,
    "AnswerGenerate": 2,
    "[Custom, Custom, Custom] -> ScEnsemble": 1,
    "Custom -> Programmer -> Format": 1,
    "Custom -> Format": 1,
    "Programmer -> Format": 1,
    "AnswerGenerate -> Review ? Revise : done": 1,
    "AnswerGenerate -> Format": 1,
    "Custom -> Programmer -> Review ? Revise : done -> Format": 1,
}
FALLBACK = "### Step 1: Analyze the problem, then solve it."


def turn(name: str, arguments: dict[str, Any], errors: tuple[str, ...] = (), seen: str = "ok"):
    """One turn with one call, in the layout of `EpisodeRecord.turns`."""
    return {
        "action": json.dumps({"name": name, "arguments": arguments}),
        "calls": [{"name": name, "arguments": arguments}],
        "observation": seen,
        "reward": 0.0,
        "repairs": [],
        "errors": list(errors),
        "valid": True,
    }


def submission(text: str) -> dict[str, Any]:
    """A call of `run_workflow`, answered as the language answers it."""
    wrong = aflowgym.parse(text).errors
    seen = "\n".join(map(str, wrong)) or "The workflow left a solution."
    return turn("run_workflow", {"dsl": text}, ("invalid_workflow",) * bool(wrong), seen)


def record(*turns: dict[str, Any], correct: bool = False, scored: bool = True) -> EpisodeRecord:
    return EpisodeRecord(
        env_id="aflowgym/Compose-v0",
        task_id="math-1",
        seed=0,
        question="How much is it?",
        turns=(*turns, turn("answer", {})),
        score=1.0 if correct else 0.1,
        correct=correct,
        scored=scored,
        answered=True,
        progress_bin=5,
        reward_parts={},
    )


def line(phase: str, step: int | None, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The same as a line of a run's rollouts."""
    return {"phase": phase, "step": step, **record(*turns, **more).to_json()}


@pytest.fixture(scope="module")
def p30():
    """570 rollouts, 326 of them valid, as the experiment had them."""
    counts = {text: count for text, (count, _) in P30.items()} | OTHERS
    texts = [text for text, count in counts.items() for _ in range(count)]
    texts += [FALLBACK] * 244
    random.Random(1).shuffle(texts)
    return [record(submission(text)) for text in texts]


def rows(table) -> dict[Any, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def test_table_3_1_counts_what_is_valid_and_how_many_differ(p30):
    told = rows(workflow_statistics(p30)["validity"])

    assert told["workflows written"] == (570, None)
    assert told["valid"] == (326, Share(326, 570))
    assert str(told["valid"][1]) == "57.2 % [53.1, 61.2]"
    assert told["not valid"][0] == 244
    assert told["different valid workflows"][0] == 20
    assert told["rollouts with a valid workflow"][0] == 326


def test_table_3_2_has_the_ten_patterns_in_their_order_with_their_shares(p30):
    table = workflow_statistics(p30)["patterns"]

    assert [row[:2] for row in table.rows] == [(text, count) for text, (count, _) in P30.items()]
    shares = [100 * row[2].value for row in table.rows]
    assert shares == pytest.approx([35.3, 21.2, 14.4, 6.4, 5.5, 4.0, 3.1, 2.5, 1.8, 1.5], abs=0.05)
    assert table.rows[0][2].interval == wilson_interval(115, 326)


def test_table_3_3_tells_each_operator_by_the_workflows_that_hold_it(p30):
    told = rows(workflow_statistics(p30)["operators"])
    counts = {text: count for text, (count, _) in P30.items()} | OTHERS

    for name in ("Custom", "Programmer", "Review", "Revise", "ScEnsemble"):
        expected = sum(count for text, count in counts.items() if name in text)
        assert told[name][1:] == (expected, Share(expected, 326)), name
    assert told["ScEnsemble"][:2] == (1, 1)
    assert told["Custom"][0] == told["Custom"][1] + 2  # one workflow holds it three times
    assert told["MdEnsemble"] == (0, 0, Share(0, 326))
    assert told.keys() == set(aflowgym.dsl.OPERATORS)


def test_table_3_4_puts_every_workflow_into_one_class(p30):
    told = rows(workflow_statistics(p30)["structures"])

    assert tuple(told) == tuple(STRUCTURES)
    assert told["condition"][:2] == (5, 135)
    assert told["single operator"][:2] == (3, 57)
    assert told["loop"] == (0, 0, Share(0, 326))
    assert sum(row[1] for row in told.values()) == 326
    assert sum(row[0] for row in told.values()) == 20


def test_each_of_the_ten_patterns_is_valid_and_of_its_class():
    for text, name in [(text, name) for text, (_, name) in P30.items()]:
        found = aflowgym.parse(text).workflow

        assert found is not None, text
        assert str(found) == text, text
        assert structure(found) == name, text


def test_a_class_is_told_by_constructs_at_any_depth():
    for text, name in [
        ("[Custom * 3] -> ScEnsemble", "list"),
        ("Custom * 2", "loop"),
        ("Custom -> (Review -> Revise) * 3", "loop"),
        ("Custom -> (Review ? Revise : done) * 3", "mixed"),
        ("[Custom, Programmer] -> ScEnsemble -> Review ? Revise : done", "mixed"),
        ("[Custom -> Review ? Revise : done, Custom] -> ScEnsemble", "mixed"),
    ]:
        assert structure(aflowgym.parse(text).workflow) == name, text


def test_spellings_of_one_workflow_are_one_pattern_and_the_sloppy_one_is_remarked():
    found = [
        record(submission("Custom -> Review ? Revise : done")),
        record(submission("```\ncustom → review ? revise\n```")),
    ]
    told = workflow_statistics(found)

    assert [row[:2] for row in told["patterns"].rows] == [("Custom -> Review ? Revise : done", 2)]
    assert rows(told["validity"])["valid, read without a remark"][0] == 1


def test_what_is_not_valid_is_counted_by_its_codes_each_once_a_text():
    found = [
        record(submission("Custom -> ScEnsemble")),
        record(submission("Nonsense -> Custum -> Custom")),
        record(submission(FALLBACK)),
        record(submission("Custom")),
    ]
    table = workflow_statistics(found)["errors"]

    assert [(row[0], row[2], row[3]) for row in table.rows] == [
        ("E-NEEDS-LIST", 1, Share(1, 3)),
        ("E-NO-WORKFLOW", 1, Share(1, 3)),
        ("E-OP-UNKNOWN", 1, Share(1, 3)),
    ]
    assert [row[1] for row in table.rows] == [aflowgym.dsl.CODES[row[0]] for row in table.rows]


def test_what_the_environment_refused_is_not_valid_although_it_can_be_read():
    text = "CustomCodeGenerate -> Test"
    (wrong,) = aflowgym.parse(text, kind="math").errors
    assert aflowgym.parse(text).workflow is not None
    refused = turn("run_workflow", {"dsl": text}, ("invalid_workflow",), str(wrong))
    told_off = turn("run_workflow", {"dsl": 'Custom("say 7")'}, ("instruction_refused",))
    failed = turn("run_workflow", {"dsl": text}, (), "Test left nothing.")
    told = workflow_statistics([record(refused), record(told_off), record(failed)])

    expected = [(wrong.code, 1), ("instruction_refused", 1)]
    assert [row[:3:2] for row in told["errors"].rows] == expected
    assert all(row[1] for row in told["errors"].rows)
    assert [row[:2] for row in told["patterns"].rows] == [(text, 1)]


def test_a_rollout_that_wrote_none_is_counted_as_such_and_as_no_workflow():
    prose = {**turn("x", {}, ("no_call",)), "calls": [], "action": FALLBACK}
    told = rows(workflow_statistics([record(prose), record(submission("Custom"))])["validity"])

    assert told["rollouts with a workflow"] == (1, Share(1, 2))
    assert told["workflows written"] == (1, None)


def test_a_repaired_workflow_counts_both_times_and_its_rollout_once():
    found = [record(submission("Custom ->"), submission("Custom -> ScEnsemble"), correct=True)]
    found += [record(submission("Custom -> ScEnsemble"), submission("Custom"), correct=True)]
    told = workflow_statistics(found)

    assert rows(told["validity"])["workflows written"][0] == 4
    assert rows(told["validity"])["rollouts with a valid workflow"][0] == 2
    assert told["patterns"].rows == (("Custom", 2, Share(2, 2), Share(2, 2)),)


def test_right_is_told_of_scored_rollouts_by_their_last_valid_workflow():
    found = [
        record(submission("Custom"), submission("Programmer"), correct=True),
        record(submission("Custom"), correct=False),
        record(submission("Custom"), correct=True, scored=False),
    ]
    told = rows(workflow_statistics(found)["patterns"])

    assert told["Custom"][2] == Share(0, 1)
    assert told["Programmer"][2] == Share(1, 1)


def test_operators_called_one_by_one_make_the_workflow_of_their_order():
    found = record(
        turn("review", {}, ("needs_solution",)),
        turn("custom", {"copies": 3}),
        turn("sc_ensemble", {}),
        turn("answer_generate", {"copies": 1}),
    )
    lost = record(turn("revise", {}, ("needs_solution",)))
    open_list = record(turn("custom", {"copies": 2}))
    told = workflow_statistics([found, lost, open_list])

    text = "[Custom, Custom, Custom] -> ScEnsemble -> AnswerGenerate"
    assert [row[:2] for row in told["patterns"].rows] == [(text, 1)]
    assert [row[:3:2] for row in told["errors"].rows] == [("E-LIST-END", 1), ("needs_solution", 1)]


def test_of_several_calls_in_a_turn_the_types_tell_which_was_refused():
    calls = [{"name": name, "arguments": {}} for name in ("revise", "custom", "review")]
    several = {**turn("x", {}, ("needs_solution",)), "calls": calls}

    told = workflow_statistics([record(several)])
    assert [row[:2] for row in told["patterns"].rows] == [("Custom -> Review", 1)]


def test_a_long_episode_is_no_workflow_that_is_too_large():
    found = record(*(turn("custom", {"copies": 1}) for _ in range(15)))

    assert workflow_statistics([found])["patterns"].rows[0][1] == 1


def test_a_check_tool_or_an_alias_is_no_operator():
    found = [record(turn("check", {"dsl": "Custom"}), turn("code", {}))]

    assert rows(workflow_statistics(found)["validity"])["workflows written"][0] == 0


def test_operators_of_ones_own_are_known_where_they_are_handed_in():
    mine = aflowgym.dsl.OPERATORS.copy()
    mine.register(
        aflowgym.operators.catalogue.Operator("Guess", "Guess.", "{problem}", writes=("solution",))
    )
    found = [record(turn("run_workflow", {"dsl": "Guess"}))]

    assert workflow_statistics(found)["patterns"].rows == ()
    assert workflow_statistics(found, operators=mine)["patterns"].rows[0][0] == "Guess"


@functools.cache
def trained() -> list[dict[str, Any]]:
    """A policy that collapses: from four workflows to one, over 50 steps."""
    rng = random.Random(3)
    four = list(P30)[:4]
    found = [line("after", None, submission(four[2])) for _ in range(8)]
    for step in range(1, 51):
        for _ in range(8):
            text = four[2] if rng.random() < step / 50 else rng.choice([*four, FALLBACK])
            found.append(line("grpo", step, submission(text)))
    return found + [line("before", None, submission(text)) for text in [*four, FALLBACK]]


def test_time_runs_from_before_over_windows_of_steps_to_after():
    told = moments(Gathered(readings(trained())), windows=20)

    phases = [phase for phase, _ in groupby(moment.phase for moment in told)]
    assert phases == ["before", "grpo", "after"]
    assert [moment.steps for moment in told][:3] == ["", "1-3", "4-6"]
    assert told[-2].steps == "49-50"
    assert sum(moment.tally.rollouts for moment in told) == 413
    assert (told[0].tally.able, told[0].tally.rollouts) == (4, 5)


def test_a_collapse_shows_as_entropy_and_diversity_that_fall_to_nothing():
    table = workflow_statistics(trained())["time"].to_json()

    assert table[0]["entropy"] == pytest.approx(math.log(4))
    assert table[0]["diversity"] == 1.0
    assert (table[-1]["entropy"], table[-1]["diversity"]) == (0.0, 0.0)
    assert table[-1]["favourite"] == "Programmer"
    assert table[-1]["its share"]["share"] == 1.0


def test_patterns_are_compared_between_the_phases_where_there_are_several():
    both = workflow_statistics(trained())["patterns"]
    one = workflow_statistics([each for each in trained() if each["phase"] == "grpo"])["patterns"]

    assert both.columns[-3:] == ("share before", "share grpo", "share after")
    assert rows(both)["Programmer"][-3::2] == (Share(1, 4), Share(8, 8))
    assert one.columns == ("workflow", "count", "share", "right")


def test_nothing_gives_empty_tables():
    told = workflow_statistics([])

    assert told["patterns"].rows == told["errors"].rows == told["time"].rows == ()
    assert json.loads(json.dumps(told.to_json(), allow_nan=False))["validity"][0]["count"] == 0


TEXTS = st.sampled_from([*P30, *OTHERS, FALLBACK, "Custom -> ScEnsemble", "", "[", "done"])


@settings(max_examples=15)
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=12), st.randoms())
def test_the_order_of_rollouts_changes_nothing_and_shares_add_up(found, rng):
    records = [line("grpo", 1 + i % 4, submission(t), correct=c) for i, (t, c) in enumerate(found)]
    told = workflow_statistics(records, top=50)
    rng.shuffle(records)

    assert workflow_statistics(records, top=50) == told
    counts = {row[0]: row[1] for row in told["patterns"].rows}
    total = rows(told["validity"])["valid"][0]
    assert sum(counts.values()) == sum(row[2] for row in told["structures"].rows) == total
    assert list(counts.items()) == sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


@settings(max_examples=40)
@given(
    st.text(max_size=60) | st.none() | st.integers(), st.sampled_from(["run_workflow", "Custom"])
)
def test_no_argument_that_a_model_writes_stops_the_counting(value, name):
    arguments = {"dsl": value, "copies": value}
    told = workflow_statistics([record(turn(name, arguments)), record(turn(name, {}))])

    assert json.dumps(told.to_json(), allow_nan=False)


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=3), st.integers(1, 40), min_size=1, max_size=8))
def test_entropy_and_diversity_stay_within_their_bounds(counts):
    assert 0.0 <= entropy(counts) <= math.log(len(counts)) + 1e-12
    total = sum(counts.values())
    if total < 2:
        assert math.isnan(diversity(counts))
    else:
        pairs = [text for text, count in counts.items() for _ in range(count)][:40]
        assert 0.0 <= diversity(counts) <= 1.0
        assert diversity(Counter(pairs)) == pytest.approx(
            sum(a != b for i, a in enumerate(pairs) for b in pairs[:i])
            / (len(pairs) * (len(pairs) - 1) / 2)
            if len(pairs) > 1
            else math.nan,
            nan_ok=True,
        )
