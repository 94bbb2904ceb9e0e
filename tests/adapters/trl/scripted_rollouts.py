"""TRL's stock trainer with `Rollouts`, in which only the words of the model come from a script."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from trl import GRPOTrainer

from adapters.trl import GuardCallback, Rollouts, grpo_config
from tests.adapters.reference.scripted import ScriptedEngine
from tests.adapters.trl.scripted_trl import END, NOTES, call, recorded


class Speaker(NamedTuple):
    """The rollout whose words are asked for."""

    step: int
    group: int
    member: int
    task: str

    @property
    def number(self) -> int:
        """The number in the note."""
        return 10 + int(self.task.rpartition("-")[2])


Script = Callable[[Speaker], list[str]]


class ScriptedRollouts(Rollouts):
    """Rollouts whose turns are those of a script.

    Attributes:
        outputs: What was returned to TRL, batch by batch.
    """

    script: Script
    outputs: list[dict[str, list[Any]]]

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Play a batch, and keep what TRL gets."""
        self.outputs.append(super().__call__(prompts, trainer))
        return self.outputs[-1]

    def _prepare(self, trainer: Any, prompt: Any) -> Any:
        player = super()._prepare(trainer, prompt)
        tokenizer: Any = player._chat._tokenizer

        def say(stream: str) -> list[int]:
            _, _, step, group, member, task = stream.split("-", 5)
            turns = self.script(Speaker(int(step) + 1, int(group), int(member), task))
            return list(tokenizer("".join(turns), add_special_tokens=False)["input_ids"])

        engine: Any = ScriptedEngine(player.model, player._chat.stop, say)
        player.engine = engine
        return player


SETTINGS: Mapping[str, Any] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "num_generations": 4,
    "max_completion_length": 400,
    "max_steps": 1,
    "learning_rate": 1e-3,
    "beta": 0.0,
    "lr_scheduler_type": "constant",
    "save_strategy": "no",
    "disable_tqdm": True,
}


def scripted_trainer(
    model: Any,
    tokenizer: Any,
    folder: Path,
    script: Script,
    *,
    settings: Mapping[str, Any] | None = None,
    env_id: str = NOTES,
    env_kwargs: Mapping[str, Any] | None = None,
    rollouts: Mapping[str, Any] | None = None,
    guards: Mapping[str, Any] | None = None,
    snapshot_steps: int = 1,
    rows: int = 60,
    trainer_class: Any = GRPOTrainer,
    more_rewards: Sequence[Any] = (),
    **options: Any,
) -> Any:
    """A trainer that is ready to train by a script, and keeps what it reports in `seen`."""
    played = ScriptedRollouts(env_id, env_kwargs, **{"max_draws": None, **(rollouts or {})})
    played.script, played.outputs = script, []
    seen: list[dict[str, float]] = []
    episodes: list[Any] = []

    def on_step(step: int, metrics: dict[str, float], told: list[Any]) -> None:
        seen.append(metrics)
        episodes.append(told)

    callback = GuardCallback(played, guards, snapshot_steps=snapshot_steps, on_step=on_step)
    playable = played.dataset(2 * rows).filter(lambda row: row["prompt"] != "unfair")
    options.setdefault("train_dataset", playable.select(range(rows)))
    trainer = trainer_class(
        model=model,
        processing_class=tokenizer,
        args=grpo_config(output_dir=str(folder), **{**SETTINGS, **(settings or {})}),
        rollout_func=played,
        reward_funcs=[played.score, *more_rewards],
        callbacks=[callback],
        **options,
    )
    trainer.rollouts, trainer.guard_callback = played, callback
    trainer.seen, trainer.episodes, trainer.recorder = seen, episodes, recorded(trainer)
    trainer.outputs = played.outputs
    return trainer


def named_copy(model: Any, folder: Path) -> Any:
    """A copy of a model whose name leads to it, as TRL loads the reference by that name."""
    copied = deepcopy(model)
    copied.save_pretrained(folder)
    copied.config.name_or_path = str(folder)
    return copied


def answers(value: int, *before: str) -> list[str]:
    """The turns of a rollout that answers."""
    return [*before, call("answer", value=value)]


def one_right(speaker: Speaker) -> list[str]:
    """The first member of each group is right."""
    return answers(99 if speaker.member else speaker.number)


BROKEN = f"<tool_call>\n### Step 1: analyze the problem\n</tool_call>{END}"
