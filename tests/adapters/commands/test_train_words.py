"""What a run says of itself: its settings, its record, its verdict."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from adapters.commands import train
from adapters.training.runs.evaluations import SEEN, gain_sentence, within_chance
from adapters.training.runs.reproducibility import data_hash, differences
from adapters.training.settings import read_settings, resolve
from toolgym import ConfigurationError, Task, TaskSet
from toolgym.intervals import mean_over_tasks, wilson_interval

EXPLORE = "sqlgym/Explore-v0"


def figures(accuracy: float | None, episodes: int = 192) -> dict[str, Any]:
    ends = wilson_interval(round((accuracy or 0.0) * episodes), episodes)
    return {"accuracy": accuracy, "interval": list(ends), "episodes": episodes}


def evaluated(
    before: float | None,
    after: float,
    name: str = "unseen tasks",
    held_out: bool = True,
    temperature: float = 0.0,
) -> dict[str, Any]:
    ends = {"before": figures(before), "after": figures(after)}
    return {"name": name, "held_out": held_out, "temperature": temperature, **ends}


def test_settings_come_back_from_the_config_of_a_run() -> None:
    settings = resolve(EXPLORE, env_kwargs={"rewards": {"partial": 0.3}}, seed=4)

    assert read_settings(json.loads(json.dumps(settings.model_dump()))) == settings


def test_a_pretrained_model_gets_careful_defaults_and_an_expert() -> None:
    tiny, real = resolve(EXPLORE), resolve(EXPLORE, model="Qwen/Qwen3-0.6B")

    assert (tiny.is_tiny, tiny.demonstrator) == (True, "sloppy")
    assert (real.is_tiny, real.demonstrator) == (False, "expert")
    assert real.learning_rate < tiny.learning_rate / 100


def test_a_folder_of_another_origin_is_not_resumed() -> None:
    with pytest.raises(ConfigurationError, match="only a run that `toolgym train` began"):
        read_settings(None)


@pytest.mark.parametrize(
    ("before", "after", "control", "words"),
    [
        (0.18, 0.65, None, "elicitation, not a new skill"),
        (0.18, 0.20, None, "to 20.0% (greedy, 192 episodes), a difference within chance."),
        (0.083, 0.083, None, "Accuracy on unseen tasks stayed at 8.3% (greedy, 192 episodes)."),
        (0.65, 0.18, None, "fell from 65.0% to 18.0% (greedy, 192 episodes). Training did harm"),
        (0.18, 0.19, "shuffled-rewards", "the difference is within chance"),
        (0.18, 0.65, "shuffled-rewards", "something other than the rewards raised"),
        (0.22, 0.11, "shuffled-rewards", "noise in place of rewards did harm"),
    ],
)  # fmt: skip
def test_the_verdict_says_what_kind_of_change_it_was(
    before: float, after: float, control: str | None, words: str
) -> None:
    settings = resolve(EXPLORE, control=control)

    assert words in gain_sentence([evaluated(before, after)], settings)


def test_a_run_without_a_scored_episode_claims_nothing() -> None:
    assert "nothing can be said" in gain_sentence([evaluated(None, 0.5)], resolve(EXPLORE))


@pytest.mark.parametrize(
    ("greedy", "sampled", "control", "words"),
    [
        ((0.2, 0.6), (0.3, 0.6), None, "elicitation, not a new skill"),
        ((0.2, 0.6), (0.3, 0.34), None, "a difference within chance. Greedy decoding"),
        ((0.2, 0.2), (0.3, 0.6), None, "elicitation, not a new skill"),
        ((0.2, 0.1), (0.6, 0.3), None, "Training did harm"),
        ((0.2, 0.21), (0.3, 0.31), None, "sampled at temperature 1, 192 episodes), a difference"),
        ((0.15, 0.77), (0.28, 0.32), "shuffled-rewards", "in what is sampled is within chance"),
        ((0.15, 0.77), (0.28, 0.32), "shuffled-rewards", "noise can decide between them"),
        ((0.15, 0.77), (0.28, 0.6), "shuffled-rewards", "something other than the rewards"),
    ],
)  # fmt: skip
def test_the_verdict_goes_by_what_is_sampled(
    greedy: tuple[float, float], sampled: tuple[float, float], control: str | None, words: str
) -> None:
    """Greedily the likeliest habit is played, and noise can decide which that is."""
    both = [evaluated(*greedy), evaluated(*sampled, temperature=1.0)]

    told = gain_sentence(both, resolve(EXPLORE, control=control))

    assert words in told
    assert len(re.findall(r"(rose|fell) from|stayed at", told)) == 2
    assert ("something other" in told) == (sampled[1] > 0.5 and control is not None)


def test_where_nothing_is_held_out_the_verdict_says_so_and_calls_nothing_that() -> None:
    told = gain_sentence([evaluated(0.2, 0.6, SEEN, held_out=False)], resolve(EXPLORE))

    assert told.startswith("Accuracy on tasks that are trained on rose from 20.0% to 60.0%")
    assert "Nothing was held out" in told
    assert "unseen" not in told


def test_chance_is_two_standard_errors_of_the_difference() -> None:
    """Worked by hand: 0.5 and 0.6 of 100 differ by 0.1; 1.96 standard errors are 0.137."""
    assert within_chance(figures(0.5, 100), figures(0.6, 100))
    assert not within_chance(figures(0.5, 1000), figures(0.6, 1000))


def test_tries_that_are_alike_make_a_gain_no_surer() -> None:
    """At each of 60 tasks 16 tries do the same, so 50 and 60 % tell no more than 60 tries do."""
    ends = (mean_over_tasks([1.0] * n + [0.0] * (60 - n), [16] * 60) for n in (30, 36))
    before, after = (
        {"accuracy": each.value, "interval": [each.low, each.high], "episodes": 960}
        for each in ends
    )
    assert within_chance(before, after)


def test_the_data_hash_knows_content_and_not_places(tmp_path: Path) -> None:
    from sqlgym.tasks.task import SqlTask

    def hashed(folder: str, content: bytes, question: str = "Why?") -> str:
        file = tmp_path / folder / "a.sqlite"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        return data_hash(
            TaskSet[Task]([SqlTask("a", question, gold_sql="SELECT 1", database=file)])
        )

    here = hashed("here", b"one")

    assert hashed("there", b"one") == here
    assert hashed("there", b"two") != here
    assert hashed("there", b"one", "How?") != here


def test_what_changed_since_a_run_began_is_named() -> None:
    then = {"sqlite": "3.40", "threads": 1, "packages": {"torch": "2.12", "trl": "1.16"}}
    now = {"sqlite": "3.40", "threads": 2, "packages": {"torch": "2.13", "trl": "1.16"}}

    assert differences(then, now) == ["threads 1 -> 2", "torch 2.12 -> 2.13"]


def test_a_missing_extra_is_told_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train, "NEEDED", ("torch_of_nowhere",))

    with pytest.raises(
        ConfigurationError, match=r"torch_of_nowhere.*pip install 'toolgym\[train\]'"
    ):
        train.check_installed()
