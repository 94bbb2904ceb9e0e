"""What a run says of itself: its settings, its record, its verdict."""

from pathlib import Path
from typing import Any

import pytest

from adapters.commands import train
from adapters.training.runs.evaluations import SEEN, gain_sentence, within_chance
from adapters.training.runs.reproducibility import data_hash, differences
from adapters.training.settings import read_settings, resolve
from toolgym import ConfigurationError, Task, TaskSet
from toolgym.intervals import wilson_interval

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


def test_a_folder_of_another_origin_is_not_resumed() -> None:
    with pytest.raises(ConfigurationError, match="only runs of `toolgym train` can be resumed"):
        read_settings(None)


@pytest.mark.parametrize(
    ("greedy", "sampled", "control", "words"),
    [
        ((0.18, 0.65), None, None, "elicitation, not a new skill"),
        ((0.18, 0.20), None, None, "to 20.0% (greedy, 192 episodes), a difference within chance."),
        ((0.083, 0.083), None, None, "Accuracy on unseen tasks stayed at 8.3% (greedy, 192 ep"),
        ((0.65, 0.18), None, None, "fell from 65.0% to 18.0% (greedy, 192 episodes). Training"),
        ((0.18, 0.65), None, "shuffled-rewards", "Rewards were shuffled, so the model could"),
        ((None, 0.5), None, None, "the gain is unknown"),
        ((0.2, 0.2), (0.3, 0.6), None, "elicitation, not a new skill"),
        ((0.2, 0.1), (0.6, 0.3), None, "Training reduced accuracy"),
        ((0.2, 0.6), (0.3, 0.34), None, "sampled at temperature 1, 192 episodes), a difference"),
    ],
)  # fmt: skip
def test_the_verdict_is_on_what_is_sampled_and_says_what_kind_of_change_it_was(
    greedy: tuple[float | None, float],
    sampled: tuple[float, float] | None,
    control: str | None,
    words: str,
) -> None:
    """Greedy decoding plays the likeliest habit, and noise can decide which that is."""
    results = [evaluated(*greedy)]
    results += [evaluated(*sampled, temperature=1.0)] if sampled else []

    told = gain_sentence(results, resolve(EXPLORE, control=control))

    assert words in told
    decisive = sampled or greedy
    is_gain = decisive[0] is not None and decisive[1] - decisive[0] > 0.2
    assert ("elicitation" in told) == (is_gain and control is None)


def test_where_nothing_is_held_out_the_verdict_says_so_and_calls_nothing_that() -> None:
    told = gain_sentence([evaluated(0.2, 0.6, SEEN, held_out=False)], resolve(EXPLORE))

    assert told.startswith("Accuracy on tasks that are trained on rose from 20.0% to 60.0%")
    assert "No tasks were held out" in told
    assert "unseen" not in told


def test_chance_is_two_standard_errors_of_the_difference() -> None:
    """Worked by hand: 0.5 and 0.6 of 100 differ by 0.1; 1.96 standard errors are 0.137."""
    assert within_chance(figures(0.5, 100), figures(0.6, 100))
    assert not within_chance(figures(0.5, 1000), figures(0.6, 1000))


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
