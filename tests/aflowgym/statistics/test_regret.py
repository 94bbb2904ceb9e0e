"""Regret: what it is measured by, on which rollouts, and that its optimum is searched once."""

import json

import pytest

import aflowgym
from aflowgym.expectation.family import Family
from aflowgym.expectation.search import FOUND, best_workflow
from aflowgym.statistics.counts import Gathered
from aflowgym.statistics.regret import regrets
from aflowgym.statistics.tables import workflow_statistics
from aflowgym.statistics.workflows import readings
from toolgym import policies, rollout
from toolgym.long_work import listening

LEAST = Family(1, 0)
COMPOSE, OPERATE = "aflowgym/Compose-v0", "aflowgym/Operate-v0"


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def played(*workflows, env_id=COMPOSE, n=6, **kwargs):
    script = [call("run_workflow", dsl=text) for text in workflows]
    policy = policies.scripted([*script, call("answer")])
    return list(rollout.evaluate(env_id, policy, n=n, **kwargs).records)


def told(records, **env_kwargs):
    return workflow_statistics(records, env_kwargs=env_kwargs, family=LEAST)


def rows(records, **env_kwargs):
    return told(records, **env_kwargs)["regret"].to_json()


def test_a_rollout_counts_with_what_its_last_workflow_is_worth():
    records = played("Custom -> ScEnsemble", "Programmer", "Custom", kind="math")
    (row,) = rows(records, kind="math")

    worth = aflowgym.expected("Custom", "math").reward
    best = aflowgym.optimum("math", family=LEAST)
    assert row["reward"] == pytest.approx(worth, abs=1e-9)
    assert row["best of family"] == best.expectation.reward
    assert row["regret"]["mean"] == pytest.approx(best.expectation.reward - worth, abs=1e-9)
    assert row["best workflow"] == str(best.workflow)
    assert row["rollouts"] == 6


def test_of_operators_called_one_by_one_no_regret_is_told():
    policy = policies.scripted([call("custom"), call("answer")])
    records = rollout.evaluate(OPERATE, policy, n=3).records

    assert regrets(Gathered(readings(records)), {}, LEAST) == ()


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


@pytest.mark.nightly
@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"workflow": 3}', b'{"workflow": "Test"}']
)
def test_a_damaged_file_is_as_if_it_were_not_there(own_cache, content):
    best, _ = searched()
    (file,) = own_cache.glob("workflows/optima/*.json")
    file.write_bytes(content)

    assert searched()[0] == best
    assert json.loads(file.read_bytes()) == {"workflow": best.workflow}


@pytest.mark.nightly
def test_the_whole_family_under_the_default_weights_is_not_searched(own_cache):
    heard = []
    with listening(lambda *told: heard.append(told)):
        found = {(preset, kind): best_workflow(kind, preset).workflow for preset, kind in FOUND}

    assert found == FOUND
    assert not heard
    assert not own_cache.exists()
