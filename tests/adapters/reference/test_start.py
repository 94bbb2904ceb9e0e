"""Training begins without a look at all of its tasks."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.reference.train import ReferenceTrainer
from adapters.training.settings import GrpoSettings
from tests.adapters.conftest import NOTES
from toolgym import ConfigurationError
from toolgym.tasks import TaskSet

pytestmark = pytest.mark.torch

SHORT = {"steps": 1, "prompts": 2, "group_size": 2, "max_draws": None, "max_completion_length": 8}


def trainer(model: Any, tokenizer: Any, folder: Path, size: int) -> ReferenceTrainer:
    config = GrpoSettings.model_validate(SHORT)
    return ReferenceTrainer(model, tokenizer, NOTES, folder, config, env_kwargs={"size": size})


@pytest.mark.integration
def test_only_tasks_that_are_drawn_are_verified(
    tiny_model: Any, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: set[str] = set()
    refusal_of = TaskSet.refusal_of

    def counted(tasks: Any, task: Any) -> Any:
        verified.add(task.id)
        return refusal_of(tasks, task)

    monkeypatch.setattr(TaskSet, "refusal_of", counted)
    trainer(tiny_model, tokenizer, tmp_path, size=5000).train()
    assert 2 <= len(verified) <= 6


def test_a_training_without_a_playable_task_says_why(
    tiny_model: Any, tokenizer: Any, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="no task of notes is playable: 1 unfair"):
        trainer(tiny_model, tokenizer, tmp_path, size=0)
