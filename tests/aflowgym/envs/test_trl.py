"""The real GRPOTrainer on workflows: calls padded with nulls, and demonstrations for a model."""

from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")

from trl import GRPOConfig

import aflowgym
from adapters.training.models.demonstrations import demonstrate
from adapters.trl import environment_factory, training_dataset
from tests.adapters.conftest import make_tokenizer, tiny_model, tokenizer
from tests.adapters.trl.scripted_trl import SETTINGS, Scripted, call, logged
from tests.sweeps import sweep
from toolgym import policies, registration
from toolgym.rollout import play

pytestmark = pytest.mark.torch
ENV_IDS = ["aflowgym/Compose-v0", "aflowgym/Operate-v0"]
FIXTURES = (make_tokenizer, tiny_model, tokenizer)
PADDING = {"dsl": None, "copies": None, "value": None, "sql": None}
OTHER: dict[str, tuple[str, dict[str, Any]]] = {
    "aflowgym/Compose-v0": ("run_workflow", {"dsl": "Custom -> Revise"}),
    "aflowgym/Operate-v0": ("custom", {}),
}


def padded(env_id: str) -> Any:
    """The expert's calls, each with every argument of every tool; half play another way."""

    def script(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
        env = registration.make(env_id)
        rollouts = []
        for place, row in enumerate(inputs):
            play(env, policies.ExpertPolicy(), task_id=row["task_id"])
            calls = [each for turn in env.episode.turns for each in turn.calls]
            said = [(each.name, each.arguments) for each in calls]
            if place % 2:  # as many calls, and other ones
                said = [OTHER[env_id]] * (len(said) - 1) + said[-1:]
            rollouts.append([call(name, **{**PADDING, **given}) for name, given in said])
        return rollouts

    return script


@pytest.mark.parametrize("env_id", sweep(ENV_IDS, []))
def test_padded_calls_of_operators_fail_in_strict_parsing_only(
    env_id: str, tiny_model: Any, tokenizer: Any, tmp_path: Any
) -> None:
    assert aflowgym.__name__  # its import registers the environments
    for parsing, failures in (("lenient", 0.0), ("strict", 1.0)):
        options = {"parsing": parsing}
        settings = {**SETTINGS, "max_completion_length": 1500}
        config = GRPOConfig(
            output_dir=str(tmp_path / parsing),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to="none",
            save_strategy="no",
            logging_steps=1,
            **settings,
        )
        trainer = Scripted(
            model=tiny_model,
            processing_class=tokenizer,
            args=config,
            train_dataset=training_dataset(env_id, n=4),
            environment_factory=environment_factory(env_id, **options),
        )
        trainer.script = padded(env_id)
        trainer.train()
        name = f"{env_id.removeprefix('aflowgym/').removesuffix('-v0')}Environment"
        rewards = trainer._logs["rewards"][name]
        assert logged(trainer, "tools/failure_frequency") == [failures]
        assert (logged(trainer, "reward_std")[0] > 0) == (failures == 0.0)
        assert (logged(trainer, "grad_norm")[0] > 0) == (failures == 0.0)
        assert (len(set(rewards)) == 1) == (failures == 1.0)


@pytest.mark.parametrize(
    ("env_id", "demonstrator"), [(ENV_IDS[0], "sloppy"), (ENV_IDS[1], "expert")]
)
def test_demonstrations_are_built_and_the_same_every_time(env_id: str, demonstrator: Any) -> None:
    made = [demonstrate(env_id, 40, demonstrator=demonstrator) for _ in range(2)]
    assert made[0] == made[1]
    for transcript in made[0]:
        assert transcript[-1]["content"] == "done"
        roles = [message["role"] for message in transcript]
        assert roles[:3] == ["system", "user", "assistant"]
        assert roles.count("tool") >= 2
