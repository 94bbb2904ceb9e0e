"""The skills of simulated operators, per kind of task.

`paper` is fitted to the table published with AFlow (Zhang et al. 2024, arXiv:2410.10762): per kind
the mean of two data sets, MATH and GSM8K, HumanEval and MBPP, HotpotQA and DROP. The table
determines the means of the generators, `false_alarm`, `weight`, `repair` and `loose`; the others
are choices. `teaching` is invented: the best workflow depends on the kind of task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aflowgym.tasks.task import Kind
from toolgym.errors import ConfigurationError


@dataclass(frozen=True)
class Skills:
    """The skills of the operators on one kind of task; all but `weight` lie in [0, 1].

    Args:
        custom: Mean probability that `Custom` gives the right content.
        answer_generate: The same for `AnswerGenerate`.
        custom_code_generate: The same for `CustomCodeGenerate`. Except on `code` tasks a program is
            not an answer, and this is not used.
        programmer: The same for `Programmer`.
        loose: Share of the tasks on which right content comes in a form that the verifier refuses,
            unless a program or `Format` wrote it.
        difficulty: Correlation of the draws for one task. Near 1 a task is solved nearly always or
            nearly never, and voting is of little use.
        anchor: Probability that a generator takes over the solution that it finds, unless a fault
            was found in it.
        breaks: Probability that a program of `Programmer` does not run.
        modal: Share of the wrong answers that are the typical mistake of the task.
        catch: Probability that `Review` finds fault with wrong content.
        false_alarm: Probability that it finds fault with right content.
        keep: Probability that `Revise` leaves right content right after a fault was found.
        fix: Probability that it makes wrong content right after a fault was found.
        bare: Probability that `Format` finds the form that the verifier reads.
        weight: Ratio of the votes for a right candidate to those for a wrong one.
        reveal: Share of the wrong programs that fail a public test.
        repair: Probability that one attempt of `Test` repairs a program.
    """

    custom: float
    answer_generate: float
    custom_code_generate: float
    programmer: float
    loose: float = 0.0
    difficulty: float = 0.3
    modal: float = 0.5
    anchor: float = 0.3
    breaks: float = 0.1
    catch: float = 0.35
    false_alarm: float = 0.1
    keep: float = 0.5
    fix: float = 0.15
    bare: float = 0.95
    weight: float = 1.0
    reveal: float = 0.7
    repair: float = 0.3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0 or (value > 1 and name != "weight"):
                raise ConfigurationError(f"{name} must lie between 0 and 1, got {value:g}.")


@dataclass(frozen=True)
class Preset:
    """Skills for every kind of task, under a name."""

    name: str
    math: Skills
    code: Skills
    qa: Skills

    def skills(self, kind: Kind) -> Skills:
        """The skills on one kind of task."""
        return {"math": self.math, "code": self.code, "qa": self.qa}[kind]


PAPER: Final = Preset(
    "paper",
    math=Skills(
        custom=0.7065,
        answer_generate=0.706,
        custom_code_generate=0.0,
        programmer=0.7492,
        difficulty=0.92,
        modal=0.9495,
        false_alarm=0.1216,
        weight=0.8185,
    ),
    code=Skills(
        custom=0.794,
        answer_generate=0.802,
        custom_code_generate=0.802,
        programmer=0.802,
        difficulty=0.92,
        modal=0.6862,
        false_alarm=0.0608,
        weight=1.3031,
        repair=0.2919,
    ),
    qa=Skills(
        custom=0.7198,
        answer_generate=0.7726,
        custom_code_generate=0.0,
        programmer=0.6,
        loose=0.0525,
        difficulty=0.92,
        modal=0.9782,
        false_alarm=0.2413,
        weight=0.9046,
    ),
)

TEACHING: Final = Preset(
    "teaching",
    # A program helps, and so does voting: mistakes differ from each other.
    math=Skills(
        custom=0.35,
        answer_generate=0.45,
        custom_code_generate=0.0,
        programmer=0.6,
        difficulty=0.18,
        modal=0.2,
        catch=0.5,
        false_alarm=0.2,
        fix=0.1,
    ),
    # Tests find most mistakes; voting finds few, because a task is mastered or not.
    code=Skills(
        custom=0.35,
        answer_generate=0.4,
        custom_code_generate=0.5,
        programmer=0.45,
        difficulty=0.85,
        modal=0.7,
        catch=0.3,
        false_alarm=0.2,
        reveal=0.9,
        repair=0.6,
    ),
    # Review is worth its calls, and the form of the answer matters.
    qa=Skills(
        custom=0.5,
        answer_generate=0.6,
        custom_code_generate=0.0,
        programmer=0.25,
        loose=0.35,
        difficulty=0.85,
        modal=0.7,
        catch=0.8,
        false_alarm=0.05,
        keep=0.8,
        fix=0.5,
    ),
)

#: The presets by name.
PRESETS: Final = {preset.name: preset for preset in (PAPER, TEACHING)}


def preset_of(preset: str | Preset) -> Preset:
    """A preset by its name; a preset is returned unchanged.

    Raises:
        ConfigurationError: There is no preset with this name.
    """
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        raise ConfigurationError(f"no preset {preset!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[preset]
