"""The built-in commands of `toolgym`, and the options and functions that they share.

Each module of this folder defines one command: a typed function `command`, or a `typer.Typer` of
that name with several functions. A command calls the library and prints the result. The docstring
of a command is its help text: an imperative sentence, optional paragraphs, and an `Example:`
section, which the tests run. Modules that are slow to import are imported inside the function,
because `toolgym --help` imports all commands.
"""

from __future__ import annotations

import functools
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgym.errors import ConfigurationError
from toolgym.workers import Map, open_workers, worker_processes

if TYPE_CHECKING:
    from rich.table import Table

    from toolgym.family import TaskFamily


def environments(incomplete: str) -> list[str]:
    """Return the environment ids that start with the typed text, for shell completion."""
    from toolgym import registration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings would appear in the line that is typed
        return [name for name in registration.tool_env_ids() if name.startswith(incomplete)]


EnvId = Annotated[
    str,
    typer.Argument(
        metavar="ENV_ID",
        help="Environment id, such as sqlgym/Explore-v0, or MODULE:ID.",
        autocompletion=environments,
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(help="Data set: a name, a folder or a file (default: the environment's)."),
]
OneSplit = Annotated[
    str | None,
    typer.Option("--split", help="Split of the data set (default: the environment's)."),
]
Phase = Annotated[
    list[str] | None,
    typer.Option(
        help="Phase of the run: before, grpo, after, or one of these with -items or -sampled"
        " (default: all); may be repeated."
    ),
]
StepLimit = Annotated[
    int | None,
    typer.Option(help="Maximum number of calls per episode (default: the environment's)."),
]
RunsEnv = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="MODULE:ID",
        help="Environment of the run; needed only if it is defined in your own module.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Option of the environment (see `toolgym envs ENV_ID`); may be repeated.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS|local",
        help="Address of a Ray cluster to run on; `local` starts one on this machine.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Number of worker processes (default: none)."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Hide progress bars.")]


@functools.cache
def load_environments() -> None:
    """Import the environments of all packages, and print a line on stderr for each failure."""
    from toolgym import registration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the loop below prints shorter lines
        broken = registration.load_environments()
    for name, reason in broken.items():
        say(f"toolgym: the environments of {name!r} are skipped: {reason}", err=True)


def family_of(env_id: str) -> TaskFamily:
    """Load all environments and call `registration.family_of`."""
    from toolgym import registration

    load_environments()
    return registration.family_of(env_id)


def parameters_of(env_id: str) -> tuple[dict[str, Any], bool]:
    """Load all environments and return the parameters of one environment
    (`registration.parameters_of`).

    Raises:
        ConfigurationError: The environment does not exist.
    """
    from toolgym import registration

    load_environments()
    return registration.parameters_of(registration.environment_creator(env_id))


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return at most two known names that are similar to a misspelled word.

    >>> nearest("--rate", ["--help", "--learning-rate"])
    ['--learning-rate']
    >>> nearest("--epochs", ["--help", "--steps"])
    []
    """
    from rapidfuzz import fuzz, process

    names = {name: name.strip("-").replace("-", " ").lower() for name in known}
    wanted = word.strip("-").replace("-", " ").lower()
    scored = process.extract(wanted, names, scorer=fuzz.WRatio, score_cutoff=75, limit=2)
    return [name for _, _, name in scored]


_PYTHON_CONSTANTS: Final = {"True": True, "False": False, "None": None}


def settings_of(pairs: list[str] | None) -> dict[str, Any]:
    """Parse the values of `--set NAME=VALUE` as JSON, True, False or None, or else as text.

    Raises:
        ConfigurationError: An option is not of the form NAME=VALUE, or a name is given twice.

    >>> settings_of(["match=spider", 'tools=["answer"]'])
    {'match': 'spider', 'tools': ['answer']}
    >>> settings_of(["shuffle_dataset=False"])
    {'shuffle_dataset': False}
    """
    settings: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError(
                f"--set takes NAME=VALUE, as in --set step_limit=20; got {pair!r}."
            )
        if name in settings:
            raise ConfigurationError(f"--set {name}=... is given twice; leave out one.")
        try:
            settings[name] = (
                _PYTHON_CONSTANTS[text] if text in _PYTHON_CONSTANTS else json.loads(text)
            )
        except ValueError:
            settings[name] = text
    return settings


def arguments_for(env_id: str, settings: list[str] | None = None, **wanted: Any) -> dict[str, Any]:
    """Return the arguments for `registration.make` that were given on the command line.

    Args:
        env_id: The environment.
        settings: The values of `--set`.
        wanted: Values of other options, keyed by the name of the environment's argument; None for
            options that were not given.

    Raises:
        ConfigurationError: The environment does not exist, or an argument is given twice. Unknown
            arguments are rejected later, by `registration.make`.
    """
    parameters_of(env_id)
    return given_once(wanted, settings, "--set")


def given_once(
    wanted: Mapping[str, Any], settings: list[str] | None, option: str
) -> dict[str, Any]:
    """Combine the values of options with those of `--set` or `--policy-set`.

    Args:
        wanted: Values of options by name; None for options that were not given.
        settings: The NAME=VALUE pairs.
        option: The option of the pairs.

    Raises:
        ConfigurationError: An argument is given twice.
    """
    arguments = {name: value for name, value in wanted.items() if value is not None}
    for name, value in settings_of(settings).items():
        if name in arguments:
            raise ConfigurationError(f"{name} is given twice, also by {option}; leave out one.")
        arguments[name] = value
    return arguments


def map_of(ray: str | None, workers: int | None) -> AbstractContextManager[Map]:
    """Return a `map` function that uses the workers of `--ray` or `--workers`, or else the built-in
    `map`.

    Raises:
        ConfigurationError: Both `--ray` and `--workers` are given, the cluster cannot be reached,
            or Ray is not installed.
    """
    if ray is not None and workers is not None:
        raise ConfigurationError(
            "--workers and --ray exclude each other: --workers starts processes on this machine,"
            " --ray uses a cluster."
        )
    if ray is not None:
        return open_workers("ray", ray)
    if workers is None:
        return nullcontext(map)
    return worker_processes(workers)


def check_folder(folder: Path) -> None:
    """Check that the folder given by `--out` can be created or written to.

    Raises:
        ConfigurationError: The path or one of its parents is a file or is not writable.
    """
    place = folder.absolute()
    above = next(each for each in (place, *place.parents) if each.exists())
    if not above.is_dir():
        raise ConfigurationError(
            f"--out {folder} cannot be created: {above} is a file. Choose another folder."
        )
    if not os.access(above, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"--out {folder} cannot be created: no permission to write to {above}. Choose another"
            " folder."
        )


def with_remark(text: str, remark: str) -> str:
    """Add a remark to the first sentence of a help text.

    >>> with_remark("Split to use. All tasks are played.", "default: dev")
    'Split to use (default: dev). All tasks are played.'
    """
    first, _, others = text.partition(". ")
    return f"{first.removesuffix('.')} ({remark}). {others}".rstrip()


def facts_text(facts: Mapping[str, str]) -> str:
    """Format names and texts, one pair per line. Text with several lines is indented below its
    name.
    """
    shown = []
    for name, text in facts.items():
        lines = "".join(f"\n  {line}" for line in text.splitlines())
        shown.append(f"{name}:{lines}" if "\n" in text else f"{name}: {text}")
    return "\n".join(shown)


_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # all except tab and line feed
)


def harmless(text: str) -> str:
    r"""Replace control characters by their escapes.

    Much of the printed text comes from models, servers and files. In a terminal, control characters
    in this text could move the cursor, hide text, or reverse the direction of text.

    >>> print(harmless("ends\r\nand clears\x1b[2J"))
    ends
    and clears\x1b[2J
    """
    return _UNSEEN.sub(lambda sign: ascii(sign[0])[1:-1], text.replace("\r\n", "\n"))


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print text on stdout, or on stderr if `err` is true, with control characters escaped."""
    typer.echo(harmless(text), err=err, nl=nl)


def print_table(table: Table) -> None:
    """Print a table on stdout.

    In a narrow terminal, cells are wrapped rather than truncated. In a pipe, a table is up to 200
    characters wide.
    """
    from rich.console import Console

    for column in table.columns:
        column.overflow = "fold"
    width = None if sys.stdout.isatty() else 200
    page = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    with page.capture() as printed:
        page.print(table)
    say("\n".join(line.rstrip() for line in printed.get().splitlines()))


def print_json(value: Any) -> None:
    """Print one JSON document on stdout.

    The values nan and infinity become null, and paths become strings. Non-ASCII characters are
    escaped, so the output does not depend on the encoding of stdout.

    Raises:
        ConfigurationError: A value cannot be converted to JSON.
    """
    from toolgym.runs.files import plain

    text = json.dumps(plain(value, "the result"), indent=2)
    typer.echo(text.replace("\x7f", "\\u007f"))  # the control character that JSON does not escape
