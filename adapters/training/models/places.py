"""Where models lie: what can be said of a model's name before PyTorch is imported.

Loading PyTorch takes seconds, and a name that is wrong is wrong at once. So names are looked at
here first; `adapters.training.models.chat_policy` loads what passes. A name is a folder, an id on
the hub, or that of a model which a package index has (`adapters.training.models.published`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from adapters.training.models.published import MODELS, is_published, place_of
from toolgym.errors import ConfigurationError
from toolgym.long_work import reporting

_HUB_ID: Final = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")


@contextmanager
def loading_pytorch() -> Iterator[None]:
    """Tell whoever listens that PyTorch is loaded, around the import that takes seconds."""
    with reporting("loading PyTorch"):
        yield


def check_model(path_or_hub_id: str) -> None:
    """Make sure that a name is that of a model folder, or could be one on the hub.

    Raises:
        ConfigurationError: It is neither, and the message names what lies there, if anything does;
            or it is the name of a published model that was not got yet.
    """
    if is_published(path_or_hub_id):
        place_of(path_or_hub_id)
        return
    place = Path(path_or_hub_id).expanduser()
    if place.is_dir():
        _check_folder(place)
    elif place.exists() or path_or_hub_id[:1] in "./~" or not _HUB_ID.fullmatch(path_or_hub_id):
        near = get_close_matches(path_or_hub_id, MODELS, n=1, cutoff=0.75)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigurationError(
            f"There is no model folder {path_or_hub_id}; name one that has a config.json, such as"
            " runs/NAME/checkpoints/final, a model of the hub such as Qwen/Qwen3-0.6B, or"
            f" {' or '.join(MODELS)} (`toolgym models list`).{hint}"
        )


def _check_folder(place: Path) -> None:
    if not (place / "config.json").is_file() or not any(place.glob("tokenizer*")):
        inside = sorted(
            str(file.parent.relative_to(place)) for file in place.glob("**/model.safetensors")
        )
        cure = f" It holds the models {', '.join(inside)}: name one of them." if inside else ""
        raise ConfigurationError(
            f"{place} is no model folder: it needs config.json, weights and a tokenizer.{cure}"
        )
