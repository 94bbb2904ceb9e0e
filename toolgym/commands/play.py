"""`toolgym play`: play an episode in the terminal.

A line is a call, such as `describe singer` or `query SELECT ...`, or a message in the call format
of a model. Typed calls have the same costs and rewards as the calls of a model. A line without a
call costs nothing.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgym.calls import parse_calls
from toolgym.commands import (
    Dataset,
    EnvId,
    OneSplit,
    Quiet,
    Settings,
    StepLimit,
    arguments_for,
    facts_text,
    nearest,
    say,
)
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from toolgym.env import ToolEnv
    from toolgym.tools import ToolSpec

PROMPT = "> "
MAX_QUOTED = 60  # characters of an unknown word that are shown
HELP = """\
Type a call: TOOL ARGUMENT, or as JSON: {"name": TOOL, "arguments": {"argument": value}}.
`help` prints this text, `hint` prints the next call of the expert, `quit` ends the episode."""


def command(
    env_id: EnvId,
    dataset: Dataset = None,
    split: OneSplit = None,
    task: Annotated[
        str | None,
        typer.Option("--task-id", help="Id of the task (default: random)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed that selects the task (default: random).")
    ] = None,
    step_limit: StepLimit = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Play an episode yourself by typing calls.

    Type `help` for the tools, `hint` for the next call of the expert, and `quit` to end. Calls can
    also be piped to stdin.

    Example:
        toolgym play sqlgym/Explore-v0 --seed 3
        toolgym play aflowgym/Operate-v0 --split train --step-limit 10
    """
    from toolgym import registration
    from toolgym.family import TaskFamily

    if task is not None and seed is not None:
        raise ConfigurationError("--task-id and --seed both choose the task; leave out one.")
    options = {"dataset": dataset, "split": split, "step_limit": step_limit}
    env_kwargs = arguments_for(env_id, settings, **options)
    env = registration.make(env_id, **env_kwargs)
    env.reset(seed=seed, options={"task_id": task} if task is not None else None)
    episode = env.episode
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # invalid bytes do not end the game
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):  # Windows has no line editing
            import readline  # noqa: F401
    expert: list[Any] | None = None  # played when a hint is needed
    say(f"Task {episode.task.id}\n\n{episode.question}\n")
    say(f"You have {episode.steps_left} calls.\n{how_to_play(env)}\n")
    while not episode.over:
        line = _ask()
        if line is None or line.lower() in ("quit", "exit"):
            say("The episode was not finished.")
            break
        if line.lower() in ("help", "?"):
            say(how_to_play(env))
        elif line.lower() == "hint":
            try:
                if expert is None:
                    expert = expert_calls(env_id, env_kwargs, episode.task.id, seed)
                say(_next_call(expert, env))
            except ConfigurationError as problem:
                say(str(problem))
        elif line:
            action = read_action(line, env.tools)
            if action is None:
                word = line.split()[0][:MAX_QUOTED]
                near = nearest(word, [*env.tools, "help", "hint", "quit"])
                cure = (
                    f"Did you mean {' or '.join(near)}?" if near else "Type help to list the tools."
                )
                say(f"{word!r} is not a tool. {cure}")
                continue
            observation, reward, *_ = env.step(action)
            say(f"{observation}\n[reward {reward:+.3f}, {episode.steps_left} calls left]\n")
    score, ledger = env.finish(), episode.ledger
    verdict = "Correct." if ledger.correct else "Not correct."
    say(f"{verdict if ledger.answered else 'Not answered.'} Score {score:.3f}.")
    for name, value in ledger.parts().items():
        if value:
            say(f"  {name.replace('_', ' ')} {value:+.3f}")
    if not ledger.correct:
        facts = dict(env.family.shown(env.task))
        facts.pop("question", None)  # the player has read it
        if type(env.family).shown is TaskFamily.shown:  # the family shows no solution
            with contextlib.suppress(ConfigurationError):  # there may be no expert
                calls = expert or expert_calls(env_id, env_kwargs, episode.task.id, seed)
                facts["last call of the expert"] = json.dumps(calls[-1], default=str)
        say("\nThe solution\n" + indent(facts_text(facts), "  "))


def how_to_play(env: ToolEnv[Any]) -> str:
    """Return the help text: the syntax of calls, and the tools with their arguments."""
    lines = [HELP]
    for spec in env.tools.values():
        arguments = "".join(f" {name.upper()}" for name in spec.arguments.model_fields)
        ends = " (ends the episode, costs no call)" if spec.terminal else ""
        text = indent(spec.description, "    ").lstrip()
        lines.append(f"  {spec.name}{arguments}{ends}: {text}")
    return "\n".join(lines)


def expert_calls(
    env_id: str, env_kwargs: dict[str, Any], task_id: str, seed: int | None
) -> list[dict[str, Any]]:
    """Return the calls of the environment's expert in an episode of the same task.

    Raises:
        ConfigurationError: The environment has no expert.
    """
    from toolgym import policies, rollout

    record = rollout.play(env_id, policies.ExpertPolicy(), task_id=task_id, seed=seed, **env_kwargs)
    return [call for turn in record.turns for call in turn["calls"]]


def _next_call(expert: list[dict[str, Any]], env: ToolEnv[Any]) -> str:
    """Return a hint with the first call of the expert that the player has not made."""
    made = [call.to_json() for turn in env.episode.turns for call in turn.calls]
    for call in expert:
        if call not in made:
            return f"hint: {json.dumps(call)}"
        made.remove(call)
    return "You have made all calls of the expert."


def _ask() -> str | None:
    """Read the next line, stripped; None at the end of the input."""
    try:
        line = input(PROMPT).strip()
    except EOFError:
        say("")
        return None
    if not sys.stdin.isatty():
        say(line)  # a terminal shows typed lines, but not piped ones
    return line


def read_action(line: str, tools: dict[str, ToolSpec]) -> Any:
    """Convert a typed line to an action for `ToolEnv.step`, or return None if it is not a call.

    >>> from toolgym.tools import specs_from
    >>> tools = specs_from([{"name": "look", "parameters": {"properties": {"at": {}}}}])
    >>> read_action("look the door", tools)
    {'name': 'look', 'arguments': {'at': 'the door'}}
    """
    called, bracket, _ = line.partition("(")
    if line[0] in "{[<" or (bracket and called in tools):
        return line
    word, _, rest = line.partition(" ")
    name = next((name for name in tools if name.lower() == word.lower()), None)
    if name is None:
        return line if parse_calls(line, tools) else None
    declared = tools[name].parameters["properties"]
    # The last argument takes the rest of the line.
    words = rest.split(None, max(len(declared) - 1, 0)) if declared else []
    return {
        "name": name,
        "arguments": {
            argument: _typed(text.strip(), schema)
            for text, (argument, schema) in zip(words, declared.items(), strict=False)
        },
    }


def _typed(text: str, schema: dict[str, Any]) -> Any:
    """Return the text, or its JSON value if the argument can have another type than text."""
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
