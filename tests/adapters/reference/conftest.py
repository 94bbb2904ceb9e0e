"""A tokenizer and a model for the notes, and one thread."""

from collections.abc import Iterator
from typing import Any

import pytest

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


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Sums of several threads differ in their last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
