"""Regret: what it is measured by, on which rollouts, and that its optimum is searched once."""

import doctest
import json
import math

import pytest

import aflowgym
import aflowgym.expectation.search
import aflowgym.statistics.regret
from aflowgym.expectation.family import Family
from aflowgym.expectation.search import FOUND, best_workflow
from aflowgym.statistics.counts import Gathered
from aflowgym.statistics.regret import regrets
from aflowgym.statistics.tables import workflow_statistics
from aflowgym.statistics.workflows import readings
from toolgym import policies, rollout
from toolgym.long_work import listening
from toolgym.rewards import RewardConfig

SMALL, LEAST = Family(2, 0), Family(1, 0)
COMPOSE, OPERATE = "aflowgym/Compose-v0", "aflowgym/Operate-v0"


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def played(*workflows, env_id=COMPOSE, n=6, **kwargs):
    script = [call("run_workflow", dsl=text) for text in workflows]
    policy = policies.scripted([*script, call("answer")])
    return list(rollout.evaluate(env_id, policy, n=n, **kwargs).records)


def told(records, **env_kwargs):
    return workflow_statistics(records, env_kwargs=env_kwargs, family=SMALL)


def rows(records, **env_kwargs):
    return told(records, **env_kwargs)["regret"].to_json()


def test_a_rollout_counts_with_what_its_last_workflow_is_worth():
    records = played("Custom -> ScEnsemble", "Programmer", "Custom", kind="math")
    (row,) = rows(records, kind="math")

    worth = aflowgym.expected("Custom", "math").reward
    best = aflowgym.optimum("math", family=SMALL)
    assert row["reward"] == pytest.approx(worth, abs=1e-9)
    assert row["best of family"] == best.expectation.reward
    assert row["regret"]["mean"] == pytest.approx(best.expectation.reward - worth, abs=1e-9)
    assert row["best workflow"] == str(best.workflow)
    assert row["rollouts"] == 6


def test_the_best_workflow_has_no_regret():
    best = str(aflowgym.optimum("math", family=SMALL).workflow)
    (row,) = rows(played(best, kind="math"))

    assert row["regret"]["mean"] == pytest.approx(0, abs=1e-9)


def test_a_rollout_without_a_valid_workflow_counts_with_its_own_score():
    bad = played("Custom -> ScEnsemble", kind="qa", n=4)
    good = played("Custom", kind="qa", n=4)
    (row,) = rows([*bad, *good])

    mean = (sum(r.score for r in bad) / 4 + aflowgym.expected("Custom", "qa").reward) / 2
    assert row["reward"] == pytest.approx(mean, abs=1e-9)
    low, high = row["regret"]["interval"]
    assert low < row["regret"]["mean"] < high


def test_preset_and_weights_are_those_of_the_run():
    rewards = {"step": 0.005, "failed_call": 0.005}
    kwargs = {"backend": "simulated:paper", "rewards": rewards}
    (row,) = rows(played("Programmer", kind="math", n=3, **kwargs), kind="math", **kwargs)

    worth = aflowgym.expected("Programmer", "math", "paper", rewards=RewardConfig.of(rewards))
    assert row["reward"] == pytest.approx(worth.reward, abs=1e-9)
    assert row["best of family"] == pytest.approx(
        aflowgym.optimum(
            "math", "paper", family=SMALL, rewards=RewardConfig.of(rewards)
        ).expectation.reward
    )


def test_the_note_says_where_the_defaults_are_assumed():
    records = played("Custom", kind="math", n=1)
    known = told(records, kind="math")["regret"].note
    assumed = workflow_statistics(records, family=SMALL)["regret"].note

    assert "Preset: teaching." in known
    assert "assumed" not in known
    assert assumed.endswith("is not recorded here: its defaults are assumed.")


@pytest.mark.parametrize(
    "env_kwargs",
    [
        {"backend": "replay:answers.jsonl"},
        {"backend": "simulated:unheard"},
        {"backend": None},
        {"free_answer": True},
    ],
)
def test_where_the_worth_of_a_workflow_is_not_known_no_regret_is_told(env_kwargs):
    records = played("Custom", kind="math", n=1)

    with pytest.raises(KeyError, match="regret"):
        told(records, **env_kwargs)["regret"]


def test_of_operators_called_one_by_one_no_regret_is_told():
    policy = policies.scripted([call("custom"), call("answer")])
    records = rollout.evaluate(OPERATE, policy, n=3).records

    assert regrets(Gathered(readings(records)), {}, SMALL) == ()


def test_phases_are_told_apart_in_the_order_of_a_run():
    lines = [
        {"phase": phase, "step": None, **record.to_json()}
        for phase, text in (("after", "Programmer"), ("before", "Custom"))
        for record in played(text, kind="math", n=2)
    ]
    found = regrets(Gathered(readings(lines)), {}, SMALL)

    assert [each.phase for each in found] == ["before", "after"]
    assert found[0].regret.value > found[1].regret.value


def test_what_a_fault_left_unscored_is_left_out():
    lines = [record.to_json() for record in played("Custom", kind="math", n=3)]
    lines[0] |= {"scored": False, "score": None}
    (row,) = rows(lines)

    assert row["rollouts"] == 2


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def searched(kind="math", **options):
    heard = []
    with listening(lambda what, done, total: heard.append((what, done))):
        best = best_workflow(kind, family=LEAST, **options)
    return best, heard


def test_the_search_is_made_once_and_told(own_cache):
    first, heard = searched()
    second, silence = searched()

    assert first == second
    what = "searching the best workflow of the family for math tasks (preset teaching), once"
    assert heard == [(what, 0), (what, 1)]
    assert silence == []


def test_other_weights_presets_and_kinds_are_searched_anew(own_cache):
    searched()
    others = [
        searched(preset="paper"),
        searched("qa"),
        searched(rewards=RewardConfig.of({"step": 0.008, "failed_call": 0.01})),
    ]

    assert all(heard for _, heard in others)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"workflow": 3}', b'{"workflow": "Test"}']
)
def test_a_damaged_file_is_as_if_it_were_not_there(own_cache, content):
    best, _ = searched()
    (file,) = own_cache.glob("workflows/optima/*.json")
    file.write_bytes(content)

    assert searched()[0] == best
    assert json.loads(file.read_bytes()) == {"workflow": best.workflow}


def test_a_cache_that_cannot_be_written_is_no_error(own_cache):
    own_cache.write_text("a file where the folder should be")

    best, heard = searched()
    assert best.expectation.reward == aflowgym.optimum("math", family=LEAST).expectation.reward
    assert heard


def test_regret_is_measured_against_the_best_of_the_whole_family():
    table = workflow_statistics(played("Programmer", kind="math", n=2), env_kwargs={})["regret"]

    whole = aflowgym.expected(FOUND["teaching", "math"], "math").reward
    assert table.rows[0][4] == whole
    assert table.rows[0][5].value == pytest.approx(
        whole - aflowgym.expected("Programmer", "math").reward, abs=1e-9
    )
    assert math.isclose(table.rows[0][3] + table.rows[0][5].value, whole)
    assert "the best of the stated family, which is all chains of up to 4 operators" in table.note


def test_the_whole_family_under_the_default_weights_is_not_searched(own_cache):
    heard = []
    with listening(lambda *told: heard.append(told)):
        found = {(preset, kind): best_workflow(kind, preset).workflow for preset, kind in FOUND}

    assert found == FOUND
    assert not heard
    assert not own_cache.exists()


def test_a_workflow_better_than_the_best_of_the_family_is_told_and_logged_once(caplog):
    best = "[Programmer * 5, Programmer * 5] -> ScEnsemble"
    aflowgym.statistics.regret._tell_once.cache_clear()
    records = played(best, kind="math", n=2)
    (row,) = rows(records, kind="math")
    note = told(records, kind="math")["regret"].note

    assert row["regret"]["mean"] < 0
    assert "Better than the best of the stated family: math, [Programmer, " in note
    (line,) = caplog.messages
    assert "-> ScEnsemble is worth 0.873538, " in line
    assert "Better" not in told(played("Programmer", kind="math"), kind="math")["regret"].note


@pytest.mark.parametrize("module", [aflowgym.expectation.search, aflowgym.statistics.regret])
def test_the_examples_in_the_docstrings_are_true(module):
    assert doctest.testmod(module).failed == 0
