"""The commands of the core, and what commands share.

Each module here holds one command: a typed function called `command`, or a `typer.Typer` of that
name with several, that calls the library and formats what comes back. Its docstring is its help:
one imperative sentence, perhaps a paragraph, and an `Example:` that the tests run. Commands import
what is slow inside the function, since `toolgym --help` imports them all.

What they share is below: the options of several commands, how an environment is looked up so that
a broken package is told in one line, and how results are put on a terminal (their progress:
`toolgym.commands.progress`).
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgym.commands.completion import SPLITS, data_sets, environments, one_of, phases
from toolgym.errors import ConfigurationError
from toolgym.spread import HERE, Spread, open_spread

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

    from toolgym.family import TaskFamily

EnvId = Annotated[
    str,
    typer.Argument(help="The environment, such as sqlgym/Explore-v0.", autocompletion=environments),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        help="A folder, or the name of a data set of the environment.", autocompletion=data_sets
    ),
]
OneSplit = Annotated[
    str | None,
    typer.Option("--split", help="A part of the data set.", autocompletion=one_of(*SPLITS)),
]
Phase = Annotated[
    list[str] | None,
    typer.Option(
        help="Phase: before, grpo, after, or one with -items or -sampled; may be repeated.",
        autocompletion=phases,
    ),
]
StepLimit = Annotated[
    int | None, typer.Option(help="Maximum calls per episode (default: the environment's).")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Environment argument, as JSON or plain text; may be repeated.",
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS|local",
        help="Run on the workers of a Ray cluster; `local` starts one on this machine.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, max=1024, help="Number of worker processes."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def known_environments() -> list[str]:
    """Ids of all registered tool environments; a broken family is told once, in one line."""
    from toolgym.registration import tool_env_ids

    load_environments()
    return tool_env_ids()


@functools.cache
def load_environments() -> None:
    """Import every registered family; one that is broken is told once, in one line."""
    from toolgym import registration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same is said below, in one line instead of four
        broken = registration.load_environments()
    for name, reason in broken.items():
        say(f"toolgym: environments of {name!r} are left out: {reason}", err=True)


def environment_creator(env_id: str) -> Callable[..., Any]:
    """As `registration.environment_creator`, with every family loaded before."""
    from toolgym import registration

    load_environments()
    return registration.environment_creator(env_id)


def family_of(env_id: str) -> TaskFamily:
    """As `registration.family_of`, with every family loaded before."""
    from toolgym import registration

    load_environments()
    return registration.family_of(env_id)


_AS_PYTHON_WRITES: Final = {"True": True, "False": False, "None": None}


def settings_of(pairs: list[str] | None) -> dict[str, Any]:
    """Values of `--set NAME=VALUE`: JSON where the value is JSON (True and None too), else text.

    Raises:
        ConfigurationError: One is not of that form, or sets what another has set.

    >>> settings_of(["match=spider", 'tools=["answer"]'])
    {'match': 'spider', 'tools': ['answer']}
    >>> settings_of(["dynamic_sampling=False"])
    {'dynamic_sampling': False}
    """
    settings: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError(
                f"--set takes NAME=VALUE, as in --set step_limit=20; got {pair!r}."
            )
        if name in settings:
            raise ConfigurationError(f"--set {name}=... is given twice; leave one out.")
        try:
            settings[name] = (
                _AS_PYTHON_WRITES[text] if text in _AS_PYTHON_WRITES else json.loads(text)
            )
        except ValueError:
            settings[name] = text
    return settings


def arguments_for(env_id: str, settings: list[str] | None = None, **wanted: Any) -> dict[str, Any]:
    """Those keyword arguments that were given, for `gym.make`.

    Args:
        settings: What `--set` was given.
        wanted: By name of the environment's argument; None stands for "not given".

    Raises:
        ConfigurationError: The environment has no argument of that name; the message lists what
            it has. Or one is given twice.
    """
    arguments = {name: value for name, value in wanted.items() if value is not None}
    accepted, open_ended = parameters_of(environment_creator(env_id))
    for name, value in settings_of(settings).items():
        if name in arguments:
            raise ConfigurationError(f"{name} is given twice, by --set too; leave one out.")
        if name not in accepted and not open_ended:
            has = ", ".join(accepted) or "none"
            raise ConfigurationError(f"{env_id} has no argument {name!r} to --set: it has {has}.")
        arguments[name] = value
    for name in () if open_ended else arguments:
        if name not in accepted:
            takes = [option for option in wanted if option in accepted]
            raise ConfigurationError(
                f"{env_id} takes no {_as_option(name)}; leave it out. Of these options it takes"
                f" {', '.join(map(_as_option, takes)) or 'none'}."
            )
    return arguments


def parameters_of(creator: Callable[..., Any]) -> tuple[dict[str, Any], bool]:
    """The named arguments with their defaults (`inspect.Parameter.empty` for none).

    Returns:
        The arguments, and whether any other keyword is taken too.
    """
    parameters = list(inspect.signature(creator).parameters.values())
    named = {
        p.name: p.default for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    }
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _as_option(name: str) -> str:
    return "--" + name.replace("_", "-")


def spread_of(ray: str | None, workers: int | None) -> AbstractContextManager[Spread]:
    """Where the parts of some work are done: what `--ray` or `--workers` asks for, else here.

    Raises:
        ConfigurationError: Both are given, there is no such cluster, or Ray is not installed.
    """
    if ray is not None and workers is not None:
        raise ConfigurationError(
            "--workers is for this machine and --ray for a cluster: leave one out."
        )
    if ray is not None:
        return open_spread("ray", ray)
    if workers is None:
        return nullcontext(HERE)
    from toolgym.processes import processes

    return processes(workers)


def check_folder(folder: Path) -> None:
    """Make sure that a folder is there to write into, or can be made.

    Raises:
        ConfigurationError: Something that is no folder is in the way, or one may not write there.
    """
    place = folder.absolute()
    above = next(each for each in (place, *place.parents) if each.exists())
    if not above.is_dir():
        raise ConfigurationError(f"--out {folder} cannot be made: {above} is a file.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"--out {folder} cannot be made: you may not write into {above}. Name another place."
        )


def first_sentence(docstring: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split())


def facts_text(facts: Mapping[str, str]) -> str:
    """Facts of a task, one on a line; a text of several lines stands below its name."""
    shown = []
    for name, text in facts.items():
        lines = "".join(f"\n  {line}" for line in text.splitlines())
        shown.append(f"{name}:{lines}" if "\n" in text else f"{name}: {text}")
    return "\n".join(shown)


def how_it_ends(description: str, more: str = "") -> str:
    """A sentence behind the description of a tool that ends the episode.

    That it ends the episode is left out where the description says so.

    Args:
        more: What else is to be said, such as "costs no call".

    >>> how_it_ends("Pull the handle.", "costs no call")
    ' It ends the episode and costs no call.'
    >>> how_it_ends("Answer and end the episode.", "costs no call")
    ' It costs no call.'
    """
    words = " ".join(description.lower().split())
    said = "end the episode" in words or "ends the episode" in words
    told = " and ".join(filter(None, ("" if said else "ends the episode", more)))
    return f" It {told}." if told else ""


_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # all but tab and end of line
)


def harmless(text: str) -> str:
    r"""A text that moves no cursor, hides nothing and turns no letters around on a terminal.

    Models, servers and strangers' files wrote much of what is printed, and a terminal obeys control
    characters. Each is shown as its escape.

    >>> print(harmless("ends\r\nand clears\x1b[2J"))
    ends
    and clears\x1b[2J
    """
    return _UNSEEN.sub(lambda sign: ascii(sign[0])[1:-1], text.replace("\r\n", "\n"))


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, whoever wrote it; `err` prints it on stderr."""
    typer.echo(harmless(text), err=err, nl=nl)


def console(*, stderr: bool = False) -> Console:
    """Where results go: as wide as the terminal, or wide enough not to break lines in a pipe."""
    from rich.console import Console
    from rich.segment import Segment

    class Screen(Console):
        """A console for foreign text; a reader who went away is the command line's affair."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for each in super().render(renderable, options):
                yield each if each.control else Segment(harmless(each.text), each.style)

    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty()
    return Screen(stderr=stderr, width=200 if piped else None, highlight=False, markup=False)


def print_table(table: Table) -> None:
    """Print a table on stdout; a narrow terminal breaks its cells and leaves nothing out."""
    for column in table.columns:
        column.overflow = "fold"
    console().print(table)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout.

    Nan and the infinities, which JSON lacks, become null; a path becomes its text. Letters that
    stdout cannot encode, such as half a surrogate pair, are escaped, as JSON escapes them.

    Raises:
        ConfigurationError: Something in it is of a type that JSON cannot hold.
    """
    from toolgym.runs.files import plain

    finite = plain(value, "the result")
    # JSON escapes the control characters below the blank itself.
    text = _UNSEEN.sub(
        lambda sign: f"\\u{ord(sign[0]):04x}" if ord(sign[0]) > 32 else sign[0],
        json.dumps(finite, indent=2, ensure_ascii=False),
    )
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(finite, indent=2)
    typer.echo(text)
