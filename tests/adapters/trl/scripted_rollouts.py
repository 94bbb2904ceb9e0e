"""TRL's `GRPOTrainer` with `Rollouts`, in which the words of the model come from a script."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from trl import GRPOTrainer

from adapters.trl import GuardCallback, Rollouts, grpo_config
from tests.adapters.conftest import NOTES
from tests.adapters.reference.scripted import ScriptedEngine

SETTINGS: Mapping[str, Any] = {
    "num_generations": 4,
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 1,
    "max_completion_length": 400,
    "max_steps": 1,
    "beta": 0.0,  # TRL loads the reference model from a folder
    "learning_rate": 1e-3,
    "save_strategy": "no",
    "disable_tqdm": True,
    "use_cpu": True,
}

Say = Callable[[str, int], Sequence[str]]
"""Function from a task's id and the place in its group to the turns of a rollout."""


class ScriptedRollouts(Rollouts):
    """Rollouts whose turns are those of a script."""

    def __init__(self, say: Say, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.say = say

    def _prepare(self, trainer: Any, task_id: str) -> Any:
        def engine(model: Any, *, stop: Collection[int], slots: int) -> ScriptedEngine:
            return ScriptedEngine(model, stop, said)

        def said(stream: str) -> list[int]:
            """The tokens of a stream, which is named mode-seed-step-group-member-task."""
            *_, member, task = stream.split("-", 5)
            turns = [
                trainer.processing_class(t, add_special_tokens=False)
                for t in self.say(task, int(member))
            ]
            return [token for turn in turns for token in turn["input_ids"]]

        with mock.patch("adapters.reference.play.Engine", engine):
            return super()._prepare(trainer, task_id)


def trainer_of(
    model: Any,
    tokenizer: Any,
    folder: Path,
    rollouts: Rollouts,
    *,
    rows: int | None = None,
    guards: Mapping[str, Any] | None = None,
    on_step: Any = None,
    peft_config: Any = None,
    snapshot_steps: int = 10,
    **settings: Any,
) -> GRPOTrainer:
    """A trainer that plays rollouts, and has the guards."""
    guard = GuardCallback(rollouts, guards, snapshot_steps=snapshot_steps, on_step=on_step)
    return GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=grpo_config(output_dir=str(folder), **{**SETTINGS, **settings}),
        rollout_func=rollouts,
        reward_funcs=rollouts.score,
        train_dataset=rollouts.dataset(rows),
        peft_config=peft_config,
        callbacks=[guard],
    )


def scripted(model: Any, tokenizer: Any, folder: Path, say: Say, **options: Any) -> GRPOTrainer:
    """A trainer that plays the notes by a script."""
    own = {key: options.pop(key) for key in ("env_kwargs", "max_draws") if key in options}
    return trainer_of(model, tokenizer, folder, ScriptedRollouts(say, NOTES, **own), **options)
