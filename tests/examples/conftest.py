"""The folders of the recipes, from which their programs import each other."""

import sys
from pathlib import Path
from typing import Any

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "integrations"
for name in ("verl", "skyrl"):
    # Behind all others: the folders hold no module of a library's name, and may never hide one.
    sys.path.append(str(RECIPES / name))


@pytest.fixture(scope="session")
def tiny_tokenizer() -> Any:
    """A small tokenizer with a chat format, made of a few transcripts; it is only read."""
    pytest.importorskip("transformers", reason="needs the extra train")
    from adapters.tiny.tokenizer import train_tokenizer
    from adapters.training.models.demonstrations import demonstrate

    return train_tokenizer(demonstrate("sqlgym/Explore-v0", 20, dataset="tiny"), 600)
