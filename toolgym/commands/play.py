"""`toolgym play`: a person plays an episode in the terminal.

The person types calls as it comes easily: `describe singer`, `query SELECT ...`, `answer 5`, the
same as Python (`describe(table_name="singer")`) or as JSON, as a model would. They go the same
way as a model's calls, so they cost and earn the same. A line that is no call at all is told so
and costs nothing: that price is for models. A hint is the next call of the expert, who plays the
same task in a second environment, so that it does not touch the person's episode: it goes along
with the person's calls, as far as they are its own. A lost episode ends with the solution.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from difflib import get_close_matches
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from toolgym.commands import (
    Dataset,
    EnvId,
    OneSplit,
    Quiet,
    Settings,
    StepLimit,
    arguments_for,
    facts_text,
    how_it_ends,
    say,
)
from toolgym.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Generator

    from toolgym.calls import ToolCall
    from toolgym.env import ToolEnv
    from toolgym.episode import Episode
    from toolgym.tools import ToolSpec

PROMPT = "> "
MAX_QUOTED = 60  # letters of a line that is told to be no call
HELP = """\
Type a call: TOOL ARGUMENT, or TOOL(argument=value), or {"name": TOOL, "arguments": {...}}.
help shows this, hint shows what an expert would do next, quit leaves."""


def command(
    env_id: EnvId,
    dataset: Dataset = None,
    split: OneSplit = None,
    task: Annotated[
        str | None, typer.Option("--task-id", "--task", help="The id of the task to play.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Chooses the task.")] = None,
    step_limit: StepLimit = None,
    settings: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Play an episode yourself, by typing calls.

    Type `help` for how to call, `hint` for what an expert would do next, `quit` to leave. A lost
    episode ends with the solution. Lines can also be piped in.

    Example:
        toolgym play sqlgym/Explore-v0 --seed 3
        toolgym play aflowgym/Operate-v0 --split train --step-limit 10
    """
    from toolgym import registration

    env_kwargs = arguments_for(
        env_id, settings, dataset=dataset, split=split, step_limit=step_limit
    )
    if task is not None and seed is not None:
        raise ConfigurationError("--task-id and --seed both choose the task; give one of them.")
    env = registration.make(env_id, **env_kwargs)
    if task is None:
        env.reset(seed=seed)
        task = env.episode.task.id
    # By its id the episode can be begun once more, for hints, with the same luck.
    env.reset(seed=seed, options={"task_id": task})
    _prepare_input()
    Game(env, registration.make(env_id, **env_kwargs), seed).run()


def _prepare_input() -> None:
    """Line editing where there is a terminal; bytes that are no text must not end the game."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    if sys.stdin.isatty():
        with contextlib.suppress(ImportError):  # Windows has none
            import readline  # noqa: F401


class Game:
    """One episode between a person and an environment.

    Args:
        env: The environment, already reset.
        shadow: Another one like it, for hints.
        seed: What it was reset with.
    """

    def __init__(self, env: ToolEnv[Any], shadow: ToolEnv[Any], seed: int | None = None) -> None:
        self._env = env
        self._expert = _Expert(shadow, env.episode.task.id, seed)

    def run(self) -> None:
        """Ask for lines until the episode is over, the person leaves, or the input ends."""
        episode = self._env.episode
        say(f"Task {episode.task.id}\n\n{episode.question}\n")
        say(f"You have {episode.steps_left} calls.\n{self._how_to_play()}\n")
        while not episode.over:
            line = _ask()
            if line is None or line.lower() in ("quit", "exit"):
                say("You left before the end.")
                break
            if line:
                self._take(line)
        self._tell_result()

    def _take(self, line: str) -> None:
        """Do what a line says."""
        if line.lower() in ("help", "?"):
            say(self._how_to_play())
        elif line.lower() == "hint":
            say(self._expert.hint(self._env.episode))
        else:
            action = read_action(line, self._env.tools)
            if action is None:
                say(self._not_a_call(line))
                return
            observation, reward, *_ = self._env.step(action)
            left = self._env.episode.steps_left
            say(f"{observation}\n[reward {reward:+.3f}, {left} calls left]\n")

    def _how_to_play(self) -> str:
        usage = []
        for spec in self._env.tools.values():
            arguments = " ".join(name.upper() for name in spec.arguments.model_fields)
            ends = how_it_ends(spec.description, "costs no call") if spec.terminal else ""
            text = indent(spec.description + ends, "    ").lstrip()
            usage.append(f"  {spec.name} {arguments}".rstrip() + f": {text}")
        return "\n".join([HELP, *usage])

    def _not_a_call(self, line: str) -> str:
        word = line.split()[0][:MAX_QUOTED]
        near = get_close_matches(word.lower(), [*self._env.tools, "help", "hint", "quit"], n=1)
        return f"{word!r} is no tool. " + (
            f"Did you mean {near[0]!r}?" if near else "Type help to see what is there."
        )

    def _tell_result(self) -> None:
        """Close the episode and take its score apart."""
        score = self._env.finish()
        ledger = self._env.episode.ledger
        verdict = "Correct." if ledger.correct else "Not correct."
        if not ledger.answered:
            verdict = "Not answered."
        hints = f" Hints: {self._expert.given}." if self._expert.given else ""
        say(f"{verdict} Score {score:.3f}.{hints}")
        for name, value in ledger.parts().items():
            if value:
                say(f"  {name.replace('_', ' ')} {value:+.3f}")
        if not ledger.correct:
            say(f"\n{self._solution()}")

    def _solution(self) -> str:
        """The right answer, as the family shows it, else as the expert gives it."""
        from toolgym.family import TaskFamily

        family = self._env.family
        if type(family).shown is not TaskFamily.shown:
            facts = family.shown(self._env.task)
            facts.pop("question", None)  # it was read already
            return "The solution\n" + indent(facts_text(facts), "  ")
        answer = self._expert.answer()
        if answer:
            return f"The expert answers: {answer}"
        return (
            "The right answer is not known: the environment shows none, and its expert finds none."
        )


class _Expert:
    """The expert of the same episode, who goes along with the person's calls.

    The calls that are the expert's own, in whatever order the person made them, are answered with
    what the person was shown; the first one that the person has not made is the hint. In the second
    environment they are made too, with the others that came before them, so that its state and its
    budget are those of the person's episode at that point.
    """

    def __init__(self, shadow: ToolEnv[Any], task_id: str, seed: int | None) -> None:
        self._shadow, self._task_id, self._seed = shadow, task_id, seed
        self._playing: Generator[Any, str, None] | None = None
        self._wanted: Any = None
        self._shared: set[int] = set()
        self._replayed = 0
        self._last: Any = None
        self.given = 0

    def hint(self, episode: Episode) -> str:
        """The expert's next call behind those that were made in an episode, in words."""
        made = _calls_made(episode)
        try:
            calls = self._go_along(episode, made)
        except StopIteration:
            return "The expert has nothing more to say." + self._not_shared(made)
        except ConfigurationError as problem:
            return str(problem)
        if not calls:
            return "The expert cannot tell: it would call nothing now." + self._not_shared(made)
        self.given += calls != self._last
        self._last = calls
        told = [
            json.dumps(dict(zip(("name", "arguments"), c, strict=True)), default=str) for c in calls
        ]
        return "\n".join(f"hint: {call}" for call in told) + self._not_shared(made)

    def answer(self) -> str:
        """The call that ends the expert's own episode, if that is right; else nothing."""
        try:
            self._begin()
            while not self._shadow.episode.over and self._playing is not None:
                self._wanted = self._playing.send(self._shadow.step(self._wanted)[0])
        except (StopIteration, ConfigurationError):
            pass
        if self._playing is None or not self._shadow.episode.ledger.correct:
            return ""
        call = self._shadow.episode.turns[-1].calls[-1]
        return json.dumps({"name": call.name, "arguments": call.arguments}, default=str)

    def _begin(self) -> None:
        self._shadow.reset(seed=self._seed, options={"task_id": self._task_id})
        self._playing = self._shadow.expert()
        self._wanted = next(self._playing)

    def _go_along(self, episode: Episode, made: list[_Made]) -> list[_Call]:
        """The first calls of the expert that were not made."""
        from toolgym.calls import parse_calls

        if self._playing is None:
            self._begin()
        while True:
            calls = [_plain(call) for call in parse_calls(self._wanted, self._shadow.tools)]
            places = self._places(calls, made)
            if not places or self._playing is None:
                return calls
            for turn in episode.turns[self._replayed : made[places[-1]].turn + 1]:
                self._shadow.step(list(turn.calls))
                self._replayed += 1
            self._shared.update(places)
            self._wanted = self._playing.send("\n\n".join(made[place].shown for place in places))

    def _places(self, calls: list[_Call], made: list[_Made]) -> list[int]:
        """Where all of these calls were made, each at the first place that is not taken."""
        places: list[int] = []
        for call in calls:
            free = (k for k in range(len(made)) if k not in self._shared and k not in places)
            place = next((k for k in free if made[k].call == call), None)
            if place is None:
                return []
            places.append(place)
        return places

    def _not_shared(self, made: list[_Made]) -> str:
        """What is to be said of calls that the expert would not make."""
        others = sum(k not in self._shared and not each.failed for k, each in enumerate(made))
        if not others:
            return ""
        what = "one of your calls is" if others == 1 else f"{others} of your calls are"
        return f"\n({what} not the expert's: it cannot tell what has changed by that.)"


_Call = tuple[str, dict[str, Any]]


class _Made(NamedTuple):
    """A call that was made: in which turn, what was shown for it, and whether it was refused."""

    turn: int
    call: _Call
    shown: str
    failed: bool


def _plain(call: ToolCall) -> _Call:
    return call.name, call.arguments


def _calls_made(episode: Episode) -> list[_Made]:
    """The calls of an episode in their order."""
    made = []
    for number, turn in enumerate(episode.turns):
        shown = [turn.observation] if len(turn.calls) == 1 else turn.results
        for call, text, error in zip(turn.calls, shown, turn.errors, strict=False):
            made.append(_Made(number, _plain(call), text, error is not None))
    return made


def _ask() -> str | None:
    """The next line, stripped; None at the end of the input."""
    try:
        line = input(PROMPT).strip()
    except EOFError:
        say("")
        return None
    if not sys.stdin.isatty():
        say(line)  # nobody typed it on this terminal, so it is not there to be read
    return line


def read_action(line: str, tools: dict[str, ToolSpec]) -> Any:
    """A typed line as an action for `ToolEnv.step`; None if it is no call.

    >>> from toolgym.tools import specs_from
    >>> tools = specs_from([{"name": "look", "parameters": {"properties": {"at": {}}}}])
    >>> read_action("look the door", tools)
    {'name': 'look', 'arguments': {'at': 'the door'}}
    """
    if line[0] in "{[<":
        return line
    called = re.match(r"(\w+)\(.*\)$", line)
    if called and called[1] in tools:
        return _without_repairs(line, tools)
    word, _, rest = line.partition(" ")
    name = next((name for name in tools if name.lower() == word.lower()), None)
    if name is None:
        return None
    return {"name": name, "arguments": _read_words(rest.strip(), tools[name])}


def _without_repairs(line: str, tools: dict[str, ToolSpec]) -> Any:
    """A call written as Python, made clean: what mends a model's call is a convenience here."""
    from toolgym.calls import parse_calls

    calls = parse_calls(line, tools)
    if len(calls) != 1 or calls[0].error is not None:
        return line
    return {"name": calls[0].name, "arguments": calls[0].arguments}


def _read_words(rest: str, spec: ToolSpec) -> dict[str, Any]:
    """The rest of a line as arguments: all of it for one argument, word by word for several."""
    declared = spec.parameters["properties"]
    if not rest:
        return {}
    if len(declared) == 1:
        [(name, schema)] = declared.items()
        return {name: _typed(rest, schema)}
    words = split_words(rest)
    last = len(declared) - 1
    words = [*words[:last], " ".join(words[last:])] if len(words) > last else words
    return {
        name: _typed(word, schema)
        for (name, schema), word in zip(declared.items(), words, strict=False)
    }


# What `shlex` takes for a piece of a word; it adds each letter to the last ones, in quadratic time.
_PIECE = re.compile(
    r"([ \t\r\n]++)|'([^']*+)'|\"((?:[^\"\\]++|\\.)*+)\"|\\(.)|([^ \t\r\n'\"\\]++)", re.DOTALL
)


def split_words(text: str) -> list[str]:
    """The words of a line as a shell has them; at blanks only, if its quotes do not match.

    >>> split_words(r"look 'the door' at\\ once")
    ['look', 'the door', 'at once']
    >>> split_words("look at the king's door")
    ['look', 'at', 'the', "king's", 'door']
    """
    words: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:  # an apostrophe, most likely
            return text.split()
        position = piece.end()
        _, single, double, escaped, plain = piece.groups()
        if piece.lastindex == 1:
            words.append([])
        elif double is not None:
            words[-1].append(re.sub(r"\\([\"\\])", r"\1", double))
        else:
            words[-1].append(single or escaped or plain or "")
    return ["".join(word) for word in words if word]


def _typed(text: str, schema: dict[str, Any]) -> Any:
    """The text, or what it says in JSON where the argument may be something else than a text."""
    if schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
