"""`toolgym envs`: list the environments, or describe one with its tools, options and rewards.

The information is read from the environment classes; no data set is loaded.
"""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.commands import (
    AsJson,
    environments,
    load_environments,
    parameters_of,
    print_json,
    print_table,
    say,
)
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.env import ToolEnv

LAW = """\
correct:     score = 1 - cost
answered:    score = {partial:g} * progress - cost
unanswered:  score = {partial:g} * progress - cost - {unanswered:g}
cost = {cost_cap:g} * (1 - exp(-sum of costs / {cost_cap:g})); costs: {costs}
Every correct episode scores at least {margin:g} more than every incorrect one."""


def command(
    env_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV_ID",
            help="Environment id, such as sqlgym/Explore-v0, or MODULE:ID (default: all).",
            autocompletion=environments,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the environments, or describe one.

    With ENV_ID, the command prints the tools and their arguments, the options and their defaults,
    and the reward.

    Example:
        toolgym envs
        toolgym envs sqlgym/Explore-v0
        toolgym envs --json
    """
    load_environments()
    if env_id is None:
        _list(as_json)
    elif as_json:
        print_json(describe(env_id))
    else:
        _print(describe(env_id))


def describe(env_id: str) -> dict[str, Any]:
    """Return a description of an environment as plain data, without loading its data set.

    Returns:
        A dict with `id`, `description`, `tools` (OpenAI function schemas), `terminal` (names of the
        tools that end an episode), `defaults`, `rewards` (the weights), `law` (a description of the
        score).

    Raises:
        ConfigurationError: The environment does not exist, or is not a `ToolEnv`.
    """
    from toolgym import registration
    from toolgym.rewards import COSTS, RewardConfig

    cls = _class_of(env_id)
    defaults = parameters_of(env_id)[0]
    defaults |= registration.spec_of(env_id).kwargs
    weights = RewardConfig.of(defaults.get("rewards")).model_dump()
    costs = ", ".join(f"{name.replace('_', ' ')} {weights[name]:g}" for name in COSTS)
    paragraph = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    return {
        "id": env_id,
        "description": " ".join(paragraph.split()),
        "tools": [spec.schema() for spec in cls.tools.values()],
        "terminal": [spec.name for spec in cls.tools.values() if spec.terminal],
        "defaults": {name: _plain(value) for name, value in defaults.items()},
        "rewards": weights,
        "law": LAW.format(**weights, costs=costs),
    }


def _class_of(env_id: str) -> type[ToolEnv[Any]]:
    """Return the class of an environment; if a function makes it, call the function."""
    from toolgym import registration
    from toolgym.env import ToolEnv

    creator = registration.environment_creator(env_id)
    if not isinstance(creator, type):
        return type(registration.make(env_id))
    if not issubclass(creator, ToolEnv):
        raise ConfigurationError(
            f"{env_id!r} has no tools: it is not a toolgym.ToolEnv. `toolgym envs` lists them."
        )
    return creator


def _plain(value: Any) -> Any:
    """Return a default as plain data for JSON; "required" for an argument without a default."""
    if value is inspect.Parameter.empty:
        return "required"
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _list(as_json: bool) -> None:
    from rich.table import Table

    from toolgym.registration import tool_env_ids

    shown = []
    for env_id in tool_env_ids():
        try:
            shown.append(describe(env_id))
        except ConfigurationError as problem:
            say(f"toolgym: {problem}", err=True)
    if as_json:
        return print_json(shown)
    table = Table("environment", "tools", "description", box=None, pad_edge=False)
    for entry in shown:
        names = ", ".join(tool["function"]["name"] for tool in entry["tools"])
        table.add_row(entry["id"], names, entry["description"])
    print_table(table)
    if not shown:
        say("No environment is registered. Run `toolgym doctor`.", err=True)


def _print(shown: dict[str, Any]) -> None:
    """Print the description, tools, options and rewards of an environment."""
    say(f"{shown['id']}\n{shown['description']}\n\nTools")
    for tool in shown["tools"]:
        function = tool["function"]
        ends = " (ends the episode)" if function["name"] in shown["terminal"] else ""
        text = indent(function["description"], "    ").lstrip()
        say(f"  {function['name']}{ends}: {text}")
        for name, declared in function["parameters"]["properties"].items():
            kinds = [each.get("type", "any") for each in declared.get("anyOf", [declared])]
            say(f"      {name} ({' or '.join(kinds)}): {declared.get('description', '')}")
    say("\nOptions (--set NAME=VALUE)")
    for name, value in shown["defaults"].items():
        say(f"  {name} = {value!r}")
    say("\nReward")
    say(indent(shown["law"], "  "))
