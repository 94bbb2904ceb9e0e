"""A training run from beginning to end: imitate, measure, reinforce, measure again.

    warm-up   demonstrations are played and imitated        -> checkpoints/warmup
    preflight can it learn anything at all?                 -> preflight.json
    before    on tasks that are not trained on              -> summary.json
    grpo      by whichever trainer was chosen               -> its own checkpoints
    after     on the same tasks                             -> checkpoints/final, summary.json

Each phase leaves its result in the run folder before the next begins, and a run that is taken up
again skips what is there; the trainer goes on from its own last checkpoint. So a run that was
killed at any moment ends with the files that it would have had without. Until its end its summary
says `interrupted`, because a killed process cannot say it any more. What the evaluations were on,
and what of it the training has not, stands in the summary's `evaluations`
(`adapters.training.runs.evaluations`); `before` and `after` are the figures of the first.

Where a launcher started several processes, the first does all of this, and the others train along.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from adapters.training.models.chat_policy import ChatModelPolicy
from adapters.training.runs.evaluations import Evaluation, evaluations, gain_sentence
from adapters.training.runs.preparation import load_prepared, prepare, save
from adapters.training.runs.progress import Advance, ProgressListener
from adapters.training.runs.settings import TrainSettings
from toolgym import rollout
from toolgym.runs.run import Run

FINAL = "final"
_MEASURED_ON = 0  # seed of the choice of tasks to evaluate on: the same for every run
_AT_ONCE = 192
_PAUSE = 0.2  # seconds


@dataclass(frozen=True)
class Grpo:
    """The job of a trainer: the reinforcement learning of a run.

    Attributes:
        settings: All settings of the run.
        run: Where metrics, rollouts and checkpoints go; the trainer's own last checkpoint in it is
            where to go on.
        advance: To be called after each step.
        is_main: Whether this is the process that writes; the others only train.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    settings: TrainSettings
    run: Run
    advance: Advance
    is_main: bool = True

    def cut_off_after(self, step: int) -> None:
        """Forget what was told of steps that will be done again, and say where it stands."""
        if self.is_main:
            self.run.cut_metrics("grpo", step)
            self.run.cut_rollouts("grpo", step)
        self.advance(step, "")

    def tell_metrics(self, step: int, numbers: dict[str, float]) -> None:
        """Write down the numbers of a step, and show how far the run is."""
        self.run.log_metrics({"phase": "grpo", "step": step, **numbers})
        self.advance(step, f"reward {numbers.get('reward', float('nan')):.3f}")

    def tell_rollouts(self, step: int, records: list[dict[str, Any]]) -> None:
        """Keep some episodes of the batch that a step learns from."""
        self.run.log_rollouts({"phase": "grpo", "step": step, **record} for record in records)


Trainer = Callable[[Grpo], None]
Policies = Callable[[float], ChatModelPolicy]
"""The model as a policy that acts at a temperature; 0 is greedy."""
Check = Callable[[Run, PreTrainedModel, PreTrainedTokenizerBase], None]


def train(
    run: Run,
    settings: TrainSettings,
    trainer: Trainer,
    watch: ProgressListener,
    check: Check | None = None,
) -> dict[str, Any]:
    """Do what is left to do of a run, and return its summary.

    Args:
        run: New, or interrupted at any point.
        settings: Those it was created with.
        check: Looks at the model before anything is spent on it, and raises if that is in vain.

    Raises:
        ConfigurationError: Model, data set or environment cannot be had.
        EnvironmentFault: The environment keeps failing.
    """
    began, spent = time.monotonic(), float(run.summary.get("seconds") or 0.0)

    def note(**figures: Any) -> dict[str, Any]:
        passed = round(spent + time.monotonic() - began, 1)
        run.write_summary({**_blank(settings), **run.summary, **figures, "seconds": passed})
        return run.summary

    note()
    model, tokenizer = prepare(settings, run, watch)
    note()
    if check is not None:
        check(run, model, tokenizer)
    policies = _policies(model, tokenizer, settings)
    if run.summary["before"] is None:
        note(before=run_evaluations(run, "before", policies, settings, watch, note)[0]["before"])
    with watch.phase("GRPO", settings.steps) as advance:
        trainer(Grpo(model, tokenizer, settings, run, advance))
    save(model, tokenizer, run.checkpoints / FINAL)
    note()
    results = run_evaluations(run, "after", policies, settings, watch, note)
    gain = gain_sentence(results, settings)
    return note(after=results[0]["after"], gain=gain, status="complete")


def follow(run: Run, settings: TrainSettings, trainer: Trainer) -> None:
    """The part of a run of every process but the first: train along, and write nothing.

    They wait for the first one's evaluation by looking into the run folder, however long it takes;
    a barrier would give up after some minutes.

    Raises:
        ConfigurationError: The model cannot be loaded.
        EnvironmentFault: The environment keeps failing.
    """
    while Run.open(run.path).summary.get("before") is None:
        time.sleep(_PAUSE)
    model, tokenizer = load_prepared(settings, run)
    trainer(Grpo(model, tokenizer, settings, run, lambda *_: None, is_main=False))


def run_evaluations(
    run: Run,
    when: str,
    policies: Policies,
    settings: TrainSettings,
    watch: ProgressListener,
    note: Callable[..., Any],
) -> list[dict[str, Any]]:
    """Make the evaluations, and return their entries in the summary.

    Args:
        run: Keeps the transcripts; an evaluation before the training whose figures its summary has
            is not done again.
        when: "before" or "after".
        policies: Who acts, by temperature.
        note: Keeps `evaluations=` in the summary, each time one has its figures.
    """
    planned = evaluations(settings)
    recorded = run.summary.get("evaluations") or [{"before": run.summary["before"]}]
    results = [{**each.to_json(), "before": None, "after": None} for each in planned]
    for each, earlier in zip(results, recorded, strict=False):
        each["before"] = earlier["before"]
    for each, evaluation in zip(results, planned, strict=True):
        if when != "before" or each["before"] is None:
            policy = policies(evaluation.temperature)
            each[when] = measure(run, when, evaluation, policy, settings, watch)
            note(evaluations=results)
    return results


def measure(
    run: Run,
    when: str,
    evaluation: Evaluation,
    policy: ChatModelPolicy,
    settings: TrainSettings,
    watch: ProgressListener,
) -> dict[str, Any]:
    """Play the tasks of an evaluation, keep the transcripts in the run, and return the figures."""
    phase = f"{when}{evaluation.suffix}"
    run.cut_rollouts(phase)
    total = min(evaluation.played, evaluation.tasks) * evaluation.tries
    with watch.phase(f"{evaluation.name}, {when}", total) as advance:
        result = rollout.evaluate(
            settings.env_id,
            policy,
            n=evaluation.played,
            k=evaluation.tries,
            batch=_AT_ONCE,
            seed=_MEASURED_ON,
            progress=lambda done, _: advance(done, ""),
            **evaluation.env_kwargs,
        )
    run.log_rollouts({"phase": phase, "step": None, **r.to_json()} for r in result.records)
    return result.summary()


def _policies(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: TrainSettings
) -> Policies:
    return lambda temperature: ChatModelPolicy(
        model,
        tokenizer,
        name=settings.model,
        temperature=temperature,
        max_new_tokens=settings.max_new_tokens,
        batch=_AT_ONCE if settings.is_tiny else 16,
        seed=settings.seed,
    )


def _blank(settings: TrainSettings) -> dict[str, Any]:
    """A summary before anything is known."""
    return {
        "env_id": settings.env_id,
        "trainer": settings.trainer,
        "model": settings.model,
        "seconds": 0.0,
        "evaluations": [],
        "before": None,
        "after": None,
        "gain": None,
        "control": settings.control,
        "status": "interrupted",
    }
