"""Parts of work are done here, or elsewhere in any order, and the results are the same."""

import pickle
import sys
from pathlib import Path

import pytest

from tests.toolgym.commands.command_line import run_here
from toolgym import ConfigurationError, policies, rollout
from toolgym.family import SynthesisOrder
from toolgym.policies import ByName
from toolgym.registration import family_of
from toolgym.spread import HERE, Part, open_spread

EXPLORE = "sqlgym/Explore-v0"


class Backwards:
    """Does the last part first, and each as a process would that was sent a pickle of it."""

    sends = True

    def map(self, work, parts, progress=None):
        results = {}
        for part in reversed(parts):
            sent, about = pickle.loads(pickle.dumps((work, part.about)))
            results[part.name] = pickle.dumps(sent(about, None))
        assert len(results) == len(parts), "two parts have one name"
        return (pickle.loads(results[part.name]) for part in parts)


def folder_of(out: Path) -> dict[str, bytes]:
    return {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*.*")}


def test_parts_are_done_in_order_and_progress_counts_what_is_inside_them():
    seen, parts = [], [Part("one", 3, "a"), Part("two", 2, "b")]

    def work(about, tell):
        tell(1)
        return about.upper()

    assert list(HERE.map(work, parts, lambda *state: seen.append(state))) == ["A", "B"]
    assert seen == [(1, 5), (3, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize("policy", ["expert", "random"])
@pytest.mark.parametrize("how", [{}, {"shard": (2, 3)}], ids=str)
def test_records_are_the_same_wherever_they_are_played(policy, how):
    seen = []
    options = {"n": 6, "k": 3, "seed": 5, "batch": 4, **how}
    own = policies.load(policy, seed=5)
    here = rollout.evaluate(EXPLORE, own, on_episode=seen.append, **options)

    named = ByName(policy, seed=5)
    told = []
    elsewhere = rollout.evaluate(
        EXPLORE, named, spread=Backwards(), on_episode=told.append, **options
    )

    assert elsewhere.records == here.records == tuple(told) == tuple(seen)
    assert (elsewhere.k, elsewhere.refused) == (here.k, here.refused)
    assert named.usage() == {}


def test_written_tasks_are_the_same_wherever_they_are_written(tmp_path, monkeypatch):
    family, written = family_of(EXPLORE), {}
    files = family.invent(tmp_path / "invented", 2)
    empty = tmp_path / "empty.db"
    empty.write_bytes(files[0].read_bytes()[:100])
    for name, spread in (("here", HERE), ("elsewhere", Backwards())):
        monkeypatch.setenv("TOOLGYM_CACHE", str(tmp_path / f"cache-{name}"))
        sources, out = (tmp_path / "invented", empty), tmp_path / name
        order = SynthesisOrder(
            sources, out, {"train": 0.7, "dev": 0.3}, {"n": 4}, True, spread=spread
        )
        summary = family.synthesize(order)
        written[name] = ({**summary, "out": ""}, folder_of(out))

    assert written["elsewhere"] == written["here"]
    assert written["here"][0]["refused"].keys() == {"empty"}


class Metered(policies.ExpertPolicy):
    """The expert, which counts its turns and does not know what they cost."""

    turns = 0

    def act(self, situations):
        self.turns += len(situations)
        return super().act(situations)

    def usage(self):
        return {"turns": self.turns, "dollars": None}


def test_what_policies_use_elsewhere_is_added_up(monkeypatch):
    monkeypatch.setattr(ByName, "load", lambda self: Metered())
    named = ByName("metered")

    played = rollout.evaluate(EXPLORE, named, n=5, batch=2, spread=Backwards())

    turns = sum(len(record.turns) for record in played.records)
    assert named.usage() == {"turns": turns, "dollars": None}


@pytest.mark.parametrize(
    ("policy", "options", "told"),
    [
        (lambda text: text, {}, "no object or function"),
        (policies.expert(), {}, "no object or function"),
        (ByName("expert", options={"hook": lambda: 0}), {}, "or of expert cannot be sent to other"),
        ("expert", {"rewards": (each for each in ())}, "an option of sqlgym/Explore-v0"),
    ],
)
def test_what_cannot_be_sent_is_told(policy, options, told):
    with pytest.raises(ConfigurationError, match=told):
        rollout._playing(EXPLORE, policy, 0, options, Backwards())


def test_a_spread_that_no_package_brings_is_told_with_what_to_install():
    with pytest.raises(ConfigurationError, match=r"pip install 'toolgym\[nowhere\]'"):
        open_spread("nowhere", "local")


def test_a_machine_and_a_cluster_at_once_are_refused():
    done = run_here("eval", EXPLORE, "--workers", 2, "--ray", "local")

    assert done.returncode == 2
    assert "--workers is for this machine and --ray for a cluster" in done.stderr


@pytest.mark.parametrize(
    "command", [["eval", EXPLORE, "--n", 1], ["tasks", "synth", "x.db", "--out", "out"]], ids=str
)
def test_without_ray_the_command_says_what_to_install(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed

    done = run_here(*command, "--ray", "local")

    assert done.returncode == 2
    assert done.stderr.strip().endswith("run: pip install 'toolgym[ray]'")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
