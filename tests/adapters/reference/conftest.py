"""Models and tokenizers for the notes and the digits, trainers, and one thread."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.reference.digits import DIGITS, SETTINGS, save_beginner
from toolgym import policies, registration
from toolgym.messages import episode_messages
from toolgym.rollout import play


@pytest.fixture(scope="session")
def notes_tokenizer() -> Any:
    """The tokenizer of the tiny model, for the notes."""
    from adapters.tiny.tokenizer import train_tokenizer

    env, transcripts = registration.make("trl-tests/Notes-v0"), []
    for number in range(6):
        play(env, policies.ExpertPolicy(), task_id=f"note-{number}")
        transcripts.append(episode_messages(env))
    return train_tokenizer(transcripts, 420)


@pytest.fixture(scope="session")
def notes_model(notes_tokenizer: Any) -> Any:
    """The tiny model at its smallest, with random weights."""
    from adapters.tiny.model import TinySize, build_model

    return build_model(notes_tokenizer, size=TinySize(hidden=32, heads=2, feed_forward=64))


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small model that writes calls, and knows nothing of the digit."""
    folder = tmp_path_factory.mktemp("start")
    save_beginner(folder)
    return folder


@pytest.fixture
def make(start: Path, tmp_path: Path) -> Callable[..., Any]:
    """Makes a trainer that keeps what it reports in `told`: steps, metrics and episodes."""
    from adapters.reference.train import ReferenceTrainer
    from adapters.training.models.chat_policy import load_model
    from adapters.training.models.low_rank import lora_config
    from adapters.training.settings import GrpoSettings

    def build(**options: Any) -> Any:
        hooks = {key: options.pop(key) for key in ("evaluate", "on_save") if key in options}
        if rank := options.pop("lora_rank", 0):
            hooks["lora"] = lora_config(rank, 2 * rank, "all-linear")
        folder = tmp_path / options.pop("folder", "run")
        watch = options.pop("watch", lambda step: None)
        told: list[tuple[int, dict[str, float], list[Any]]] = []

        def on_step(step: int, metrics: dict[str, float], episodes: list[Any]) -> None:
            told.append((step, metrics, episodes))
            watch(step)

        model, tokenizer = load_model(str(start), for_training=True)
        config = GrpoSettings.model_validate({**SETTINGS, **options})
        trainer: Any = ReferenceTrainer(
            model, tokenizer, DIGITS, folder, config, on_step=on_step, **hooks
        )
        trainer.told = told
        return trainer

    return build


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Sums of several threads differ in their last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
