"""The commands of the core, and what commands share.

Each module here holds one command: a typed function called `command`, or a `typer.Typer` of that
name with several, that calls the library and formats what comes back. Its docstring is its help:
one imperative sentence, perhaps a paragraph, and an `Example:` that the tests run. Commands import
what is slow inside the function, since `toolgym --help` imports them all.

What they share is below: how plug-ins are found, how an environment is looked up without being
made, and how results, and long work of a library, are put on a terminal.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgym.errors import ConfigurationError
from toolgym.long_work import Listener

if TYPE_CHECKING:
    from rich.console import Console

COMMANDS = "toolgym.commands"
ENVIRONMENTS = "toolgym.environments"
POLICIES = "toolgym.policies"
KINDS = {COMMANDS: "command", ENVIRONMENTS: "environments", POLICIES: "policy"}

EnvId = Annotated[str, typer.Argument(help="The environment, such as sqlgym/Explore-v0.")]
Dataset = Annotated[
    str | None, typer.Option(help="A folder, or the name of a data set of the environment.")
]
StepLimit = Annotated[
    int | None, typer.Option(help="Calls per episode; the environment's own number without it.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Another argument of the environment, as JSON or plain text; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]


class PluginError(Exception):
    """An entry point that cannot be loaded; the message names it, its package and the reason."""


@dataclass(frozen=True)
class Plugin:
    """Something that an installed package adds to toolgym.

    Attributes:
        point: The entry point.
    """

    point: EntryPoint

    @property
    def origin(self) -> str:
        """The distribution that brings it, with its version."""
        dist = self.point.dist
        return f"{dist.name} {dist.version}" if dist is not None else "an unknown package"

    def load(self) -> Any:
        """Import it and return what its value names.

        Raises:
            PluginError: Its import or the look-up failed.
        """
        try:
            return self.point.load()
        except Exception as problem:  # somebody else's module: it may raise anything
            kind = KINDS.get(self.point.group, "entry point")
            raise PluginError(
                f"the {kind} {self.point.name!r} of {self.origin} ({self.point.value}) cannot be"
                f" loaded: {type(problem).__name__}: {problem}."
            ) from problem


def find_plugins(group: str) -> dict[str, Plugin]:
    """The entry points of a group by name, sorted; the first of a name counts, none is imported."""
    found: dict[str, Plugin] = {}
    for point in entry_points(group=group):
        found.setdefault(point.name, Plugin(point))
    return dict(sorted(found.items()))


def known_environments() -> list[str]:
    """Ids of all registered tool environments; a broken family is told once, in one line."""
    from toolgym.registration import tool_env_ids

    _load_environments()
    return tool_env_ids()


@functools.cache
def _load_environments() -> None:
    from toolgym.registration import load_environments

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same is said below, in one line instead of four
        broken = load_environments()
    for name, reason in broken.items():
        typer.echo(f"toolgym: environments of {name!r} are left out: {reason}", err=True)


def environment_creator(env_id: str) -> Callable[..., Any]:
    """What makes an environment, as it was registered: a class or a function; nothing is made.

    Raises:
        ConfigurationError: There is no such environment, or its module cannot be imported.
    """
    import gymnasium as gym
    from gymnasium.envs.registration import load_env_creator

    known = ", ".join(known_environments()) or "none"
    try:
        point: Any = gym.spec(env_id).entry_point
    except gym.error.Error as problem:
        raise ConfigurationError(f"{problem} Known environments: {known}.") from None
    try:
        creator: Callable[..., Any] = load_env_creator(point) if isinstance(point, str) else point
    except (ImportError, AttributeError) as problem:
        raise ConfigurationError(
            f"{env_id} cannot be imported ({point}): {problem}. Install its package again."
        ) from problem
    return creator


_AS_PYTHON_WRITES: Final = {"True": True, "False": False, "None": None}


def settings_of(pairs: list[str] | None) -> dict[str, Any]:
    """What `--set NAME=VALUE` sets: JSON where the value is JSON (True and None too), else text.

    Raises:
        ConfigurationError: One is not of that form, or sets what another has set.

    >>> settings_of(["match=spider", 'tools=["answer"]'])
    {'match': 'spider', 'tools': ['answer']}
    >>> settings_of(["dynamic_sampling=False"])
    {'dynamic_sampling': False}
    """
    found: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ConfigurationError(
                f"--set takes NAME=VALUE, as in --set step_limit=20; got {pair!r}."
            )
        if name in found:
            raise ConfigurationError(f"--set {name}=... is given twice; leave one out.")
        try:
            found[name] = _AS_PYTHON_WRITES[text] if text in _AS_PYTHON_WRITES else json.loads(text)
        except ValueError:
            found[name] = text
    return found


def arguments_for(env_id: str, settings: list[str] | None = None, **wanted: Any) -> dict[str, Any]:
    """Those keyword arguments that were given, for `gym.make`.

    Args:
        env_id: A registered environment.
        settings: What `--set` was given.
        wanted: By name of the environment's argument; None stands for "not given".

    Raises:
        ConfigurationError: The environment has no argument of that name; the message lists what
            it has. Or one is given twice.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    accepted, open_ended = parameters_of(environment_creator(env_id))
    for name, value in settings_of(settings).items():
        if name in given:
            raise ConfigurationError(f"{name} is given twice, by --set too; leave one out.")
        if name not in accepted and not open_ended:
            has = ", ".join(accepted) or "none"
            raise ConfigurationError(f"{env_id} has no argument {name!r} to --set: it has {has}.")
        given[name] = value
    for name in () if open_ended else given:
        if name not in accepted:
            known = [option for option in wanted if option in accepted]
            raise ConfigurationError(
                f"{env_id} takes no {_as_option(name)}; leave it out. Of these options it takes"
                f" {', '.join(map(_as_option, known)) or 'none'}."
            )
    return given


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


def first_sentence(docstring: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(docstring or "").split("\n\n")[0].split())


def console(*, stderr: bool = False) -> Console:
    """Where results go: as wide as the terminal, or wide enough not to break lines in a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    piped = not stream.isatty()
    return Console(stderr=stderr, width=200 if piped else None, highlight=False, markup=False)


def waiting_line() -> Listener:
    """What shows long work of a library on stderr: a line that moves, or in a pipe one line."""
    told: set[str] = set()

    def show(what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            line = f"{what}: {done:,} of {total:,}" if done < total else ""
            typer.echo(f"\r\x1b[K{line}", err=True, nl=False)
        elif what not in told:
            told.add(what)
            typer.echo(f"{what} ...", err=True)

    return show
