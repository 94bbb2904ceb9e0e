"""What a checkpoint of transformers' `Trainer` keeps for us, beside what it keeps itself.

`trainer_state.json` has room for the states of callbacks, and is the last file that a checkpoint
gets: where it is whole, all of it is there, and a checkpoint without it is passed over. What is put
there is JSON.
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerState


def kept(state: TrainerState, name: str) -> Any:
    """What the checkpoint that a run goes on from has kept under a name; None without one."""
    places: Any = state.stateful_callbacks or {}
    return places.get(name)


def keep(state: TrainerState, name: str, value: dict[str, Any]) -> None:
    """Let the next checkpoint keep a value under a name."""
    places: Any = state.stateful_callbacks or {}
    held: Any = {**places, name: value}
    state.stateful_callbacks = held
