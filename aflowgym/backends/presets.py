"""The skills of simulated operators, per kind of task: the numbers behind every draw.

A task has a latent difficulty, one of nine equal shares of a normal distribution. A generator is
right with probability `logistic(ability + spread * z)`; its ability is what makes the mean over the
difficulties the number given here, so that operators find the same tasks hard. A large spread means
that a task is either solved nearly always or nearly never, and voting is of little use.

`paper` is fitted to the table published with AFlow (Zhang et al. 2024, arXiv:2410.10762): per kind
the mean of two data sets, MATH and GSM8K, HumanEval and MBPP, HotpotQA and DROP. What the table
does not determine (`modal`, `catch`, `fix`, `keep`, `anchor` and the blind ones) is a choice.
`teaching` is invented: the kinds differ so much that the best workflow depends on the kind.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final

from aflowgym.tasks.task import Kind
from toolgym.errors import ConfigurationError
from toolgym.lazy import lazy

LEVELS: Final = 9
#: The latent difficulties, hardest first, each as likely as any other.
DIFFICULTIES: Final = tuple(NormalDist().inv_cdf((place + 0.5) / LEVELS) for place in range(LEVELS))
GENERATORS: Final = ("Custom", "AnswerGenerate", "CustomCodeGenerate", "Programmer")
#: Operators that another one can be said to act like: those that ask once.
PLAIN: Final = ("Custom", "AnswerGenerate", "CustomCodeGenerate", "Format", "Review", "Revise")


@dataclass(frozen=True)
class Skills:
    """The skills of the operators on one kind of task; all but `spread` and `weight` in [0, 1].

    Args:
        custom: Mean probability that `Custom` gives the right content.
        answer_generate: The same of `AnswerGenerate`.
        custom_code_generate: The same of `CustomCodeGenerate`. On other kinds than `code` a program
            is no answer, and this is not looked at.
        programmer: The same of `Programmer`.
        loose: Share of the tasks on which right content comes in a form that the verifier refuses,
            whoever writes it, unless a program or `Format` does.
        spread: How strongly difficulty tells.
        modal: Share of the wrong answers that are the one typical mistake of the task.
        anchor: Probability that a generator takes over the solution it finds, unless it was told
            that it is wrong.
        breaks: Probability that a program of `Programmer` does not run.
        catch: Probability that `Review` finds fault with wrong content.
        false_alarm: Probability that it finds fault with right content.
        keep: Probability that `Revise` leaves right content right, told of a fault.
        fix: Probability that it makes wrong content right, told of a fault.
        blind_keep: The same as `keep`, told nothing.
        blind_fix: The same as `fix`, told nothing.
        bare: Probability that `Format` finds the form that the verifier reads.
        weight: How much likelier a vote of `MdEnsemble` is to go to a right candidate.
        reveal: Share of wrong programs that fail a public test.
        repair: Probability that one try of `Test` mends a program.
    """

    custom: float
    answer_generate: float
    custom_code_generate: float
    programmer: float
    loose: float = 0.0
    spread: float = 1.0
    modal: float = 0.5
    anchor: float = 0.3
    breaks: float = 0.1
    catch: float = 0.35
    false_alarm: float = 0.1
    keep: float = 0.5
    fix: float = 0.15
    blind_keep: float = 0.8
    blind_fix: float = 0.1
    bare: float = 0.95
    weight: float = 1.0
    reveal: float = 0.7
    repair: float = 0.3

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0 or (value > 1 and name not in ("spread", "weight")):
                raise ConfigurationError(f"{name} must lie between 0 and 1, got {value:g}.")

    @lazy
    def odds(self) -> Mapping[str, tuple[float, ...]]:
        """By generator, the probability of the right content at each difficulty."""
        means = (self.custom, self.answer_generate, self.custom_code_generate, self.programmer)
        return {
            name: _by_difficulty(mean, self.spread)
            for name, mean in zip(GENERATORS, means, strict=True)
        }


@functools.lru_cache(maxsize=1024)
def _by_difficulty(mean: float, spread: float) -> tuple[float, ...]:
    """Probabilities whose mean over the difficulties is `mean`, by bisection on the ability."""
    if not 0 < mean < 1:
        return (mean,) * LEVELS
    low, high = -40.0 - 10 * spread, 40.0 + 10 * spread
    for _ in range(80):
        ability = (low + high) / 2
        odds = tuple(_logistic(ability + spread * z) for z in DIFFICULTIES)
        low, high = (ability, high) if sum(odds) < mean * LEVELS else (low, ability)
    return odds


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


@dataclass(frozen=True)
class Preset:
    """Skills for every kind of task.

    Args:
        name: What it is called.
        math: Skills on `math` tasks.
        code: Skills on `code` tasks; `loose` is 0 there, since a program has no loose form.
        qa: Skills on `qa` tasks.
        acts_like: For operators of your own, the one of AFlow's they act like.
    """

    name: str
    math: Skills
    code: Skills
    qa: Skills
    acts_like: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.code.loose:
            raise ConfigurationError("loose must be 0 for code: a program has no loose form.")
        for name, like in self.acts_like.items():
            if like not in PLAIN:
                names = ", ".join(PLAIN)
                raise ConfigurationError(f"{name} can act like one of {names}, not like {like!r}.")

    def skills(self, kind: Kind) -> Skills:
        """The skills on one kind of task."""
        return {"math": self.math, "code": self.code, "qa": self.qa}[kind]

    def acts(self, operator: str) -> str:
        """The operator of AFlow's that this one acts like: itself, if it is one.

        Raises:
            ConfigurationError: Nothing is known of it.
        """
        if operator in _KNOWN:
            return operator
        if operator not in self.acts_like:
            raise ConfigurationError(
                f"the simulated backend does not know {operator}; say what it acts like:"
                f' dataclasses.replace(preset, acts_like={{"{operator}": "Review"}}).'
            )
        return self.acts_like[operator]


_KNOWN: Final = frozenset({*PLAIN, "Programmer", "Test", "ScEnsemble", "MdEnsemble"})


PAPER: Final = Preset(
    "paper",
    math=Skills(
        custom=0.7065,
        answer_generate=0.706,
        custom_code_generate=0.0,
        programmer=0.7492,
        spread=6.0,
        modal=0.9495,
        false_alarm=0.1216,
        weight=0.8185,
    ),
    code=Skills(
        custom=0.794,
        answer_generate=0.802,
        custom_code_generate=0.802,
        programmer=0.802,
        spread=6.0,
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
        spread=6.0,
        modal=0.9782,
        false_alarm=0.2413,
        weight=0.9046,
    ),
)

TEACHING: Final = Preset(
    "teaching",
    # A program helps, and so does voting: mistakes are many.
    math=Skills(
        custom=0.35,
        answer_generate=0.45,
        custom_code_generate=0.0,
        programmer=0.6,
        spread=0.8,
        modal=0.2,
        catch=0.5,
        false_alarm=0.2,
        fix=0.1,
    ),
    # Tests find most mistakes, and voting finds few: a task is mastered or not.
    code=Skills(
        custom=0.35,
        answer_generate=0.4,
        custom_code_generate=0.5,
        programmer=0.45,
        spread=4.0,
        modal=0.7,
        catch=0.3,
        false_alarm=0.2,
        reveal=0.9,
        repair=0.6,
    ),
    # A reviewer is worth asking, and the form of the answer matters.
    qa=Skills(
        custom=0.5,
        answer_generate=0.6,
        custom_code_generate=0.0,
        programmer=0.25,
        loose=0.35,
        spread=4.0,
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
    """A preset by its name, or itself.

    Raises:
        ConfigurationError: None is called so.
    """
    if isinstance(preset, Preset):
        return preset
    if preset not in PRESETS:
        raise ConfigurationError(f"no preset {preset!r}; there are {', '.join(PRESETS)}.")
    return PRESETS[preset]
