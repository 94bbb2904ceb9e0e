"""Records of finished episodes, and evaluations that summarize them.

An `EpisodeRecord` is plain data that can be written as a line of JSON. An `Evaluation` contains the
records of a policy on a set of tasks, and computes the accuracy with its interval, scores and other
numbers. Episodes that are unscored because of a fault are counted, but excluded from accuracy and
scores.
"""

from __future__ import annotations

import html
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from toolgym.calls import ToolCall
from toolgym.episode import Episode, ModelUsage, Outcome, Turn
from toolgym.errors import ConfigurationError, refused_fields
from toolgym.intervals import Effect, mean_over_tasks, pass_at
from toolgym.rewards import MISTAKES
from toolgym.sanitize import visible

FIGURES: Final = ("score", "correct", "answered", "turns", "calls", "repairs", "errors", "scored")
"""The keys of the dict that `EpisodeRecord.figures` returns."""


SHOWN = ("accuracy", "interval", "mean_score", "validity", "answered", "episodes", "unscored")
"""The numbers of an evaluation that a notebook shows."""
MOST_CHARS: Final = 200
"""Maximum number of characters of a string that a notebook shows."""


def no_figures() -> dict[str, float]:
    """Return the numbers of an unscored episode: `scored` is 0, and all other numbers are nan."""
    return {**dict.fromkeys(FIGURES, math.nan), "scored": 0.0}


@dataclass
class _CallForm:
    name: str
    arguments: dict[str, Any]


@dataclass
class _TurnForm:
    action: str
    calls: list[_CallForm]
    observation: str
    reward: float
    repairs: list[str]
    errors: list[str]
    valid: bool
    results: list[str] = field(default_factory=list)


_TURN = TypeAdapter(_TurnForm)
_Turn = Annotated[dict[str, Any], AfterValidator(lambda turn: _TURN.validate_python(turn) and turn)]
_Score = Annotated[float, BeforeValidator(lambda score: math.nan if score is None else score)]


@dataclass(frozen=True, repr=False)
class EpisodeRecord:
    """One finished episode as plain data.

    Attributes:
        turns: One dict per turn with the keys `action`, `calls`, `observation`, `reward`,
            `repairs`, `errors`, `valid`, and, for several calls, `results`.
        seed: Seed with which the policy samples.
        score: The score; nan after a fault.
        progress_bin: As in `Outcome`.
        reward_parts: As in `info`.
        fault: The fault that made the episode unscored, or "".
        number: Number of the attempt at the task, starting from 0 (`toolgym.tries`). None if
            attempts are not numbered, as in training.
        mistake: The agent's mistake about whether the question has an answer, as in `info`; None if
            every question has an answer.
        env_usage: The fields of `ModelUsage` for the models that the environment called, or None.
    """

    env_id: str
    task_id: str
    seed: int
    question: str
    turns: tuple[_Turn, ...]
    score: _Score
    correct: bool
    scored: bool
    answered: bool
    progress_bin: int
    reward_parts: dict[str, _Score]
    fault: str = ""
    number: int | None = None
    mistake: str | None = None
    env_usage: dict[str, float | None] | None = None

    def __eq__(self, other: object) -> bool:
        """Compare all fields. Two nan values count as equal, so unscored records can be equal."""
        return isinstance(other, EpisodeRecord) and self.to_json() == other.to_json()

    def __repr__(self) -> str:
        """Return a summary in one line. `turns` and `to_json` contain the details."""
        score = "" if math.isnan(self.score) else f", score {self.score:.3f}"
        verdict = "correct" if self.correct else "not correct" if self.scored else "unscored"
        turns = f"{len(self.turns)} turn{'s' * (len(self.turns) != 1)}"
        return f"<EpisodeRecord {self.task_id} of {self.env_id}: {verdict}{score}, {turns}>"

    def row(self) -> dict[str, Any]:
        """Return the record as a flat row of a table, with numbers, strings and lists of codes.

        `turns` and `calls` are counts. The parts of the reward are `reward_NAME`, and the usage of
        the environment's models is `env_NAME`.
        """
        plain = self.to_json()
        turns, parts = plain.pop("turns"), plain.pop("reward_parts")
        usage = plain.pop("env_usage", None) or {}
        counts = {
            "turns": len(turns),
            "calls": sum(len(turn["calls"]) for turn in turns),
            "valid_turns": sum(bool(turn["valid"]) for turn in turns),
            "repairs": [code for turn in turns for code in turn["repairs"]],
            "errors": [code for turn in turns for code in turn["errors"]],
            "last_action": turns[-1]["action"] if turns else "",
        }
        amounts = {f"env_{name}": value for name, value in usage.items()}
        rewards = {f"reward_{name}": value for name, value in parts.items()}
        return {**plain, **counts, **amounts, **rewards}

    def figures(self) -> dict[str, float]:
        """Return numbers of the episode that can be averaged, for frameworks that average metrics.

        `correct`, `answered` and `scored` are 0 or 1. `turns`, `calls`, `repairs` and `errors` are
        counts. For an unscored episode, `scored` is 0 and all other numbers are nan.
        """
        if not self.scored:
            return no_figures()
        row = self.row()
        known = ((name, row[name]) for name in FIGURES)
        return {k: float(len(value) if isinstance(value, list) else value) for k, value in known}

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the episode, or None if it is unscored."""
        return Outcome(self.correct, self.progress_bin) if self.scored else None

    @classmethod
    def of(
        cls, episode: Episode, env_id: str, seed: int = 0, number: int | None = None
    ) -> EpisodeRecord:
        """Finish an episode and return its record."""
        score, ledger = episode.finish(), episode.ledger
        return cls(
            env_id=env_id,
            task_id=episode.task.id,
            seed=seed,
            question=episode.question,
            turns=tuple(_turn_record(turn) for turn in episode.turns),
            score=score,
            correct=ledger.correct,
            scored=not ledger.faulted,
            answered=ledger.answered,
            progress_bin=episode.outcome.progress_bin,
            reward_parts=ledger.parts(),
            fault=episode.fault,
            number=number,
            mistake=ledger.mistake,
            env_usage=episode.env_usage and episode.env_usage._asdict(),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data for JSON; nan becomes None."""
        optional = ("mistake", "env_usage")
        known = {k: v for k, v in vars(self).items() if k not in optional or v is not None}
        plain: dict[str, Any] = json.loads(json.dumps(known), parse_constant=lambda _: None)
        return plain

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> EpisodeRecord:
        """Create a record from the output of `to_json`; other keys, such as `phase`, are ignored.

        Raises:
            ConfigurationError: A key is missing.
        """
        try:
            return _RECORD.validate_python(record)
        except ValidationError as problem:
            raise ConfigurationError(f"not an episode: {refused_fields(problem):.300}") from None


_RECORD = TypeAdapter(EpisodeRecord)


def _turn_record(turn: Turn) -> dict[str, Any]:
    action = turn.action if isinstance(turn.action, str) else None
    several = {"results": list(turn.results)} if len(turn.calls) > 1 else {}
    return {
        "action": action if action is not None else calls_text(turn.calls),
        "calls": [call.to_json() for call in turn.calls],
        "observation": turn.observation,
        **several,
        "reward": turn.reward,
        "repairs": [code for call in turn.calls for code in call.repairs],
        "errors": [error.code for error in turn.errors if error is not None],
        "valid": turn.valid,
    }


def calls_text(calls: Iterable[ToolCall]) -> str:
    """Return the text recorded for an action that was given as calls: one JSON object per line."""
    return "\n".join(json.dumps(call.to_json()) for call in calls)


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The evaluation of a policy on a set of tasks.

    Iterating over an evaluation yields its records.

    `accuracy` is computed over scored episodes. `interval` is a 95 % interval for the accuracy on
    similar tasks, which accounts for the correlation of attempts at the same task. `validity` is
    the share of turns in which every call was bound to a tool without an error.

    Attributes:
        records: The records of the episodes, in the order of the tasks.
        k: Number of attempts per task.
        refused: `task_id`, `code` and `reason` of each task that could not be played.
        usage: Usage of a metered policy, such as tokens and cost; None for unknown amounts.
    """

    records: tuple[EpisodeRecord, ...]
    k: int = 1
    refused: tuple[dict[str, str], ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        """Return a summary in one line. `summary` contains all numbers, and `rows` all episodes."""
        low, high = self.interval
        env_id = self.records[0].env_id if self.records else "no environment"
        tries = f" ({self.k} tries a task)" if self.k > 1 else ""
        refused = f", {len(self.refused)} tasks refused" if self.refused else ""
        return (
            f"<Evaluation {env_id}: accuracy {self.accuracy:.3f} [{low:.3f}, {high:.3f}],"
            f" {self.episodes} episodes{tries}{refused}>"
        )

    def _repr_html_(self) -> str:
        """Return the numbers as an HTML table, for notebooks."""
        env_id = self.records[0].env_id if self.records else "no environment"
        figures = self.summary()
        facts = {name: figures[name] for name in SHOWN}
        facts["pass@1 to k"] = list(figures["pass_at_k"].values()) if self.k > 1 else None
        return html_table(f"Evaluation of {env_id}", {**facts, "tasks refused": len(self.refused)})

    def __iter__(self) -> Iterator[EpisodeRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each episode, for `pandas.DataFrame` or `Dataset.from_list`."""
        return [record.row() for record in self.records]

    @classmethod
    def merged(cls, parts: Iterable[Evaluation]) -> Evaluation:
        """Merge evaluations of different tasks into one.

        Args:
            parts: The evaluations, in the order of their tasks in the result.

        Raises:
            ConfigurationError: There are no parts, the parts have different environments or numbers
                of attempts, or two parts contain the same task.
        """
        shards = list(parts)
        records = tuple(record for part in shards for record in part)
        envs = sorted({record.env_id for record in records})
        if len(envs) != 1:
            raise ConfigurationError(
                f"only evaluations of one environment can be merged; these are of"
                f" {', '.join(envs) or 'none'}."
            )
        tasks = Counter(task_id for part in shards for task_id in {r.task_id for r in part})
        if twice := sorted(task_id for task_id, count in tasks.items() if count > 1):
            raise ConfigurationError(
                f"{len(twice)} tasks are in more than one evaluation, such as {twice[0]}."
                " Evaluate different tasks in each, with --shard I/N (shard=)."
            )
        tries: dict[str, list[int | None]] = {}
        for record in records:
            tries.setdefault(record.task_id, []).append(record.number)
        k = max(map(len, tries.values()))
        for task_id, numbers in tries.items():
            if numbers != list(range(k)):
                raise ConfigurationError(
                    f"every task needs attempts 0 to {k - 1}, but {task_id} has the attempts"
                    f" {numbers}: use the same k in each evaluation. (Episodes of a training"
                    " have no numbers.)"
                )
        refused = {refusal["task_id"]: refusal for part in shards for refusal in part.refused}
        return cls(records, k, tuple(refused.values()))

    @property
    def _scored(self) -> list[EpisodeRecord]:
        return [record for record in self.records if record.scored]

    @property
    def episodes(self) -> int:
        """Number of episodes, including unscored ones."""
        return len(self.records)

    @property
    def accuracy(self) -> float:
        """Share of correct episodes among the scored ones; nan if there are none."""
        return _mean([float(record.correct) for record in self._scored])

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy on other tasks from the same source.

        The interval is computed by `toolgym.intervals.mean_over_tasks`. The interval does not
        generalize to another training run, another prompt, or tasks of another kind.
        """
        outcomes = list(self._outcomes().values())
        found = mean_over_tasks([sum(each) / len(each) for each in outcomes], [*map(len, outcomes)])
        return found.low, found.high

    def _outcomes(self) -> dict[str, list[bool]]:
        """Return the correctness of all scored attempts at each task, by task id."""
        outcomes: dict[str, list[bool]] = {}
        for record in self._scored:
            outcomes.setdefault(record.task_id, []).append(record.correct)
        return outcomes

    @property
    def mean_score(self) -> float:
        """Mean score of the scored episodes; nan if there are none."""
        return _mean([record.score for record in self._scored])

    @property
    def validity(self) -> float:
        """Share of turns in which every call was bound to a tool without an error.

        The share is nan if there are no turns.
        """
        return _mean([float(turn["valid"]) for record in self.records for turn in record.turns])

    @property
    def answered(self) -> float:
        """Share of episodes that ended with an answer."""
        return _mean([float(record.answered) for record in self.records])

    @property
    def pass_at_k(self) -> dict[int, Effect]:
        """pass@j for j = 1..k with 95 % intervals.

        Each value is the mean over tasks of eq. 1 in Chen et al. 2021.
        """
        full = [sum(each) for each in self._outcomes().values() if len(each) == self.k]
        return {
            j: mean_over_tasks(
                [pass_at(self.k, correct, j) for correct in full],
                [self.k // j] * len(full),  # the number of disjoint groups of j attempts
            )
            for j in range(1, self.k + 1)
        }

    @property
    def env_usage(self) -> dict[str, float | None]:
        """Usage of the models that the environment called, summed over all episodes.

        Returns:
            A dict with the fields of `ModelUsage` and the number of `episodes`, or an empty dict if
            the environment called no model.
        """
        used = [record.env_usage for record in self.records if record.env_usage]
        if not used:
            return {}
        totals: dict[str, float | None] = {"episodes": self.episodes}
        for name in ModelUsage._fields:
            amounts = [each[name] for each in used]
            known = [amount for amount in amounts if amount is not None]
            totals[name] = sum(known) if len(known) == len(amounts) else None
        return totals

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the evaluation as plain data for JSON."""
        figures: dict[str, Any] = {
            "accuracy": self.accuracy,
            "interval": list(self.interval),
            "validity": self.validity,
            "mean_score": self.mean_score,
            "answered": self.answered,
            "episodes": self.episodes,
            "unscored": self.episodes - len(self._scored),
            "faults": dict(Counter(record.fault for record in self.records if record.fault)),
            "refused": [dict(refusal) for refusal in self.refused],
        }
        mistakes = [record.mistake for record in self._scored if record.mistake is not None]
        for mistake in MISTAKES if mistakes else ():
            figures[mistake] = mistakes.count(mistake) / len(mistakes)
        if self.env_usage:
            figures["env_usage"] = self.env_usage
        if self.k > 1:
            passes = {str(j): found for j, found in self.pass_at_k.items()}
            figures["pass_at_k"] = {j: found.value for j, found in passes.items()}
            figures["pass_at_k_intervals"] = {j: [p.low, p.high] for j, p in passes.items()}
        return {
            key: None if isinstance(v, float) and math.isnan(v) else v for key, v in figures.items()
        }


def usage_text(usage: Mapping[str, Any]) -> str:
    """Return `Evaluation.env_usage` as text, or "" if it is empty or has unexpected values.

    >>> usage = {"episodes": 4, "calls": 10, "tokens_in": 3000, "tokens_out": 1000}
    >>> usage_text({**usage, "dollars": 0.02})
    '2.5 calls and 1,000 tokens per episode, $0.0200 in total'
    """
    try:
        count, price = usage["episodes"], usage["dollars"]
        tokens = usage["tokens_in"] + usage["tokens_out"]
        text = f"{usage['calls'] / count:,.1f} calls and {tokens / count:,.0f} tokens per episode"
        return text if price is None else f"{text}, ${price:,.4f} in total"
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return ""


def html_table(title: str, facts: Mapping[str, object]) -> str:
    """Return a title and a table of names and values as HTML. Strings are escaped and truncated."""
    rows = "".join(
        f"<tr><th>{_shown(name)}</th><td>{_shown(value)}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    # The classes prevent MathJax from rendering two prices as a formula.
    return (
        f'<div class="tex2jax_ignore mathjax_ignore"><b>{_shown(title)}</b>'
        f"<table>{rows}</table></div>"
    )


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value[:MOST_CHARS]))
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return html.escape(visible(text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}…"))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
