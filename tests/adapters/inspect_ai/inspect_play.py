"""Evaluations by Inspect of a scripted model behind a real server, and what their logs tell."""

import json
from pathlib import Path
from typing import Any

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser

from adapters.inspect_ai.task import env
from tests.adapters.scripted_contract import NotCarried, Played, PlayedTurn, json_calls
from tests.adapters.scripted_episodes import SCRIPTS, ScriptedEpisode
from tests.chat_server import Body, ScriptedServer

SCORES = "episode"


def next_message(asked: Body) -> str | Body:
    """What the script says next that the request names as its model, `NAME` or `native-NAME`.

    As native calls it says what a server would have read as calls; all else stays a text.
    """
    kind, _, name = asked["model"].rpartition("-")
    script = next(each for each in SCRIPTS if each.name == name)
    number = sum(message["role"] == "assistant" for message in asked["messages"])
    said = script.messages[number] if number < len(script.messages) else "There is no more."
    if kind != "native":
        return said
    try:
        calls = json_calls(said)
    except NotCarried:
        return said
    return {"content": said.partition("<tool_call>")[0], "tool_calls": native(calls)}


def native(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls as the OpenAI protocol has them; arguments that are a text are sent as it is."""
    functions = [
        {
            **each,
            "arguments": text if isinstance(text := each["arguments"], str) else json.dumps(text),
        }
        for each in calls
    ]
    return [
        {"id": f"call-{number}", "type": "function", "function": function}
        for number, function in enumerate(functions)
    ]


def on(server: ScriptedServer, model: str = "native-clean") -> dict[str, Any]:
    """Options of an evaluation of a model there.

    The address is an option and no variable of the environment: Inspect keeps models by their
    options, and would go on asking the server of an earlier test.
    """
    return {
        "model": f"openai-api/script/{model}",
        "model_base_url": server.url,
        "display": "none",
    }


def evaluated(server: ScriptedServer, folder: Path, script: ScriptedEpisode, tools: str) -> EvalLog:
    """The log of one script as an evaluation; it stops when the script has no more messages."""
    (log,) = inspect_eval(
        env(script.env_id, tools=tools, env_kwargs=script.arguments),
        sample_id=script.task_id,
        turn_limit=len(script.messages),
        log_dir=str(folder),
        **on(server, f"{'native-' * (tools == 'native')}{script.name}"),
    )
    return log


def played(log: EvalLog) -> Played:
    """What the only sample of a log tells of its episode."""
    assert log.samples is not None
    (sample,) = log.samples
    score = (sample.scores or {})[SCORES]
    record = (score.metadata or {})["episode"]
    shown = observations(sample)
    is_over = sample.limit is None and sample.error is None
    turns = [
        PlayedTurn(
            observation,
            turn["reward"],
            tuple(turn["repairs"]),
            tuple(turn["errors"]),
            is_over and number == len(shown),
        )
        for number, (observation, turn) in enumerate(zip(shown, record["turns"], strict=True), 1)
    ]
    figures = score.as_dict()
    prompt = sample.messages[1].text
    return Played(prompt, tuple(turns), float(figures["score"]), record["correct"])


def observations(sample: EvalSample) -> list[str]:
    """What the model was shown after each of its messages."""
    shown: list[list[str]] = []
    for message in sample.messages[2:]:
        if isinstance(message, ChatMessageAssistant):
            shown.append([])
        elif isinstance(message, ChatMessageTool | ChatMessageUser):
            shown[-1].append(message.text)
    return ["\n\n".join(texts) for texts in shown if texts]
