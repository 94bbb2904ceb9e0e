"""`toolgym envs`: list the registered environments, or show one.

What is shown is read from the classes themselves, which are the only source of tools, defaults and
reward weights; no data set is loaded for it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from itertools import pairwise
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import (
    AsJson,
    environment_creator,
    first_sentence,
    how_it_ends,
    known_environments,
    parameters_of,
    print_json,
    print_table,
    say,
)
from toolgym.commands.completion import environments
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.env import ToolEnv

LAW = """\
correct:     score = 1 - cost
answered:    score = {partial:g} * progress - cost
unanswered:  score = {partial:g} * progress - cost - {unanswered:g}
cost = {cap:g} * (1 - exp(-sum of costs / {cap:g})); costs: {costs}
Every correct episode beats every incorrect one by at least {margin:g}."""


def command(
    env_id: Annotated[
        str | None,
        typer.Argument(
            help="An environment to show in full; all are listed without it.",
            autocompletion=environments,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the environments, or one with its tools and rewards.

    Example:
        toolgym envs
        toolgym envs sqlgym/Explore-v0
        toolgym envs --json
    """
    if env_id is None:
        _list(as_json)
        return
    shown = describe(env_id)
    if as_json:
        print_json(shown)
    else:
        _print(shown)


def describe(env_id: str) -> dict[str, Any]:
    """All that can be said of an environment without loading its data, as plain data.

    Returns:
        `id`, `description`, `tools` (OpenAI function schemas), `terminal` (names of the tools
        that end an episode), `defaults`, `rewards` (the weights), `law` (the score as a text).

    Raises:
        ConfigurationError: There is no such environment, or it is not a `ToolEnv`.
    """
    import gymnasium as gym

    from toolgym.rewards import COSTS, RewardConfig

    cls = _class_of(env_id)
    registered = dict(gym.spec(env_id).kwargs)
    creator = environment_creator(env_id)
    named = parameters_of(creator)[0]
    inherited = inherited_options(creator) if isinstance(creator, type) else {}
    defaults = {**named, **{k: v for k, v in inherited.items() if k not in named}, **registered}
    weights = RewardConfig.of(defaults.get("rewards")).model_dump()
    costs = ", ".join(f"{name.replace('_', ' ')} {weights[name]:g}" for name in COSTS)
    shares = {name: weights[name] for name in ("partial", "unanswered", "margin")}
    return {
        "id": env_id,
        "description": first_sentence(cls.__doc__),
        "tools": [spec.schema() for spec in cls.tools.values()],
        "terminal": [spec.name for spec in cls.tools.values() if spec.terminal],
        "defaults": {name: _plain(value) for name, value in defaults.items()},
        "rewards": weights,
        "law": LAW.format(**shares, cap=weights["cost_cap"], costs=costs),
    }


def inherited_options(cls: type) -> dict[str, Any]:
    """The options that a class takes as `**options` and hands on to its base, with their defaults.

    Those that the class gives to its base itself, or names in its code, are its own affair: whoever
    makes the environment cannot give them, or has not the base's default.
    """
    inherited: dict[str, Any] = {}
    settled: set[str] = set()
    makers = [vars(base)["__init__"] for base in cls.__mro__ if "__init__" in vars(base)]
    for maker, handed_to in pairwise(makers):
        given = _given_to_base(maker)
        if given is None:
            break
        parameters = list(inspect.signature(handed_to).parameters.values())[1:]
        by_place = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][: given[0]]
        settled |= {*by_place, *given[1], *parameters_of(maker)[0]}
        for parameter in parameters:
            name, default = parameter.name, parameter.default
            if default is not parameter.empty and name not in settled:
                inherited.setdefault(name, default)
    return inherited


def _given_to_base(maker: Callable[..., Any]) -> tuple[int, set[str]] | None:
    """What an `__init__` that hands its `**options` on gives to `super().__init__` itself.

    Returns:
        The number of values by place, and all names that it gives or mentions; None if it hands
        nothing on, or its code is not there.
    """
    try:
        tree = ast.parse(dedent(inspect.getsource(maker)))
        parameters = inspect.signature(maker).parameters.values()
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    rest = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "super().__init__":
            continue
        spread = [ast.unparse(each.value) for each in node.keywords if each.arg is None]
        if rest is not None and rest in spread:
            constants = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
            mentioned = {value for value in constants if isinstance(value, str)}
            return len(node.args), mentioned | {each.arg for each in node.keywords if each.arg}
    return None


def _class_of(env_id: str) -> type[ToolEnv[Any]]:
    """The class of an environment; one that a function makes has to be made to be looked at."""
    from toolgym import registration
    from toolgym.env import ToolEnv

    creator = environment_creator(env_id)
    if not isinstance(creator, type):
        return type(registration.make(env_id))
    if not issubclass(creator, ToolEnv):
        raise ConfigurationError(f"{env_id!r} has no tools: it is not a toolgym.ToolEnv.")
    return creator


def _plain(value: Any) -> Any:
    """A default as JSON can hold it; an argument without a default is shown as "required"."""
    if value is inspect.Parameter.empty:
        return "required"
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _list(as_json: bool) -> None:
    shown = []
    for env_id in known_environments():
        try:
            shown.append(describe(env_id))
        except ConfigurationError as problem:
            say(f"toolgym: {problem}", err=True)
    if as_json:
        print_json(shown)
        return
    from rich.table import Table

    table = Table("environment", "tools", "what the agent does", box=None, pad_edge=False)
    for entry in shown:
        names = ", ".join(tool["function"]["name"] for tool in entry["tools"])
        table.add_row(entry["id"], names, entry["description"])
    print_table(table)
    if not shown:
        say("No environment is registered; run `toolgym doctor`.", err=True)


def _print(shown: dict[str, Any]) -> None:
    """One environment on a page: what it is, its tools, its arguments, its law."""
    say(f"{shown['id']}\n{shown['description']}\n\nTools")
    for tool in shown["tools"]:
        function = tool["function"]
        is_last = function["name"] in shown["terminal"]
        ends = how_it_ends(function["description"]) if is_last else ""
        text = indent(function["description"] + ends, "    ").lstrip()
        say(f"  {function['name']}: {text}")
        for name, declared in function["parameters"]["properties"].items():
            say(f"      {name} ({_type(declared)}): {declared.get('description', '')}")
    say("\nDefaults")
    for name, value in shown["defaults"].items():
        say(f"  {name} = {value!r}")
    say("\nReward")
    say("\n".join(f"  {line}" for line in shown["law"].splitlines()))


def _type(declared: dict[str, Any]) -> str:
    """The JSON types that a schema fragment allows, in words."""
    options = declared.get("anyOf", [declared])
    return " or ".join(option.get("type", "any") for option in options)
