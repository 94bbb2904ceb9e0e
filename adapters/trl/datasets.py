"""Data sets for TRL: prompts for `GRPOTrainer`, one row per task, and demonstrations.

A row names its task, so that all rollouts of a group get the same question: TRL repeats the row for
each of them and hands it to `reset`, which returns the question, and TRL adds that to the last
message. Hence the empty user message. Without a task id the members of a group could draw different
questions, and their rewards would be compared for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.training.algorithms.dynamic_sampling import TaskStream
from adapters.training.models.demonstrations import first_tries, play_episodes, playable_tasks
from toolgym import policies, registration
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, episode_messages, system_prompt
from toolgym.policies import Policy
from toolgym.tasks import TaskSet

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def training_dataset(
    env_id: str,
    *,
    split: str | None = None,
    n: int | None = None,
    seed: int = 0,
    environment: str | None = None,
    **env_kwargs: Any,
) -> Dataset:
    """Prompts for `GRPOTrainer(train_dataset=...)`.

    Args:
        env_id: A registered `ToolEnv`.
        split: Passed to the environment; None leaves its default, which is `train`.
        n: How many tasks; None takes all, and verifies every one of them first.
        seed: Their order, and which `n` are taken.
        environment: The name of the environment in `GRPOTrainer(environment_factory={...})`, for a
            column `environment`. `datasets.concatenate_datasets` joins the data sets of several.
        env_kwargs: For `gym.make`; give `environment_factory` the same, `split` included.

    Returns:
        Columns `prompt` (a system message and a user message without content), `task_id`, and
        `environment` if it is given. Tasks that cannot be played fairly are left out.

    Raises:
        ConfigurationError: `n` is below 1, or no task is playable.
    """
    from datasets import Dataset, Features, List, Value

    if split is not None:
        env_kwargs["split"] = split
    env = registration.make(env_id, **env_kwargs)
    tasks = playable_tasks(env.tasks, n, seed)
    message = {"role": Value("string"), "content": Value("string")}
    features = Features({"prompt": List(message), "task_id": Value("string")})
    columns = {"prompt": [open_prompt(env)] * len(tasks), "task_id": tasks.ids}
    if environment is not None:
        features["environment"] = Value("string")
        columns["environment"] = [environment] * len(tasks)
    return Dataset.from_dict(columns, features=features)


def task_prompts(tasks: TaskSet[Any], n: int | None, seed: int) -> Dataset:
    """The data set of `Rollouts`: the prompt of a row is the id of a task.

    Args:
        tasks: Tasks of the environment; those that cannot be played fairly are left out.
        n: Number of rows. If there are fewer tasks, they are repeated in other orders. None: each
            playable task once.
        seed: Seed of the order.

    Raises:
        ConfigurationError: No task is playable, or `n` is below 1.
    """
    from datasets import Dataset

    if n is None or n < 1:
        ids = playable_tasks(tasks, n, seed).ids
    else:
        stream = TaskStream(
            len(tasks),
            seed=seed,
            is_playable=lambda place: tasks.refusal_of(tasks[place]) is None,
        )
        all_ids = tasks.ids
        ids = [all_ids[place] for place in stream.take(n)]
    return Dataset.from_dict({"prompt": ids})


def open_prompt(env: ToolEnv[Any]) -> list[Message]:
    """The prompt of every row: what TRL adds the question to."""
    return [{"role": "system", "content": system_prompt(env)}, {"role": "user", "content": ""}]


# Supervised data: episodes played through the real environment, as chat messages.
#
# Arrow stores a column of dicts as one struct with the keys of all rows, so `{"sql": ...}` comes
# back as `{"sql": ..., "table_name": null, "value": null}`, a chat template prints the nulls, and a
# model that is trained on them sends them in every call. Here both columns have the feature type
# `Json`, which keeps each message as it was, through `map`, `concatenate_datasets`, parquet and
# `save_to_disk`.


def sft_dataset(
    env_id: str,
    *,
    n: int | None = None,
    seed: int = 0,
    policy: Policy | None = None,
    final: str | None = "done",
    **env_kwargs: Any,
) -> Dataset:
    """Demonstrations for `SFTTrainer`, or for any loop that renders chat messages.

    Args:
        env_id: A registered `ToolEnv`.
        n: How many tasks; None takes all.
        seed: Their order, and the seeds of the policy's situations.
        policy: Who plays. None is the environment's expert, of whom only right answers are kept; of
            any other policy every scored episode is kept. An action without text ends its episode.
        final: A last assistant turn. TRL's own tool loop goes on until a turn without a call, so
            the model has to learn one; None leaves it out.
        env_kwargs: For `gym.make`.

    Returns:
        Columns `messages` and `tools` (the environment's schemas, which are also in the
        prompts of evaluations and of `Rollouts`).

    Raises:
        ConfigurationError: `n` is below 1, no task is playable, or the environment has no expert.
        EnvironmentFault: The machine failed.
    """
    from datasets import Dataset, Features, Json, List

    env = registration.make(env_id, **env_kwargs)
    player = policies.ExpertPolicy() if policy is None else policy
    ids = playable_tasks(env.tasks, n, seed).ids
    rows = [
        episode_messages(env, final)
        for _ in play_episodes(env, player, first_tries(ids, seed))
        if env.episode.ledger.correct or (policy is not None and not env.episode.ledger.faulted)
    ]
    columns = {"messages": rows, "tools": [env.tool_schemas()] * len(rows)}
    features = Features({"messages": List(Json()), "tools": List(Json())})
    return Dataset.from_dict(columns, features=features)


# What a supervised data set looks like once a tokenizer's own chat template has rendered it.
#
# Three faults have ruined trainings without an error: calls whose arguments were padded with nulls,
# templates that drop tool calls, and arguments that are encoded twice, so that the model learns to
# write a JSON string where an object belongs. `check_format` renders every row and looks for all
# three.

_SHOWN = 1500


@dataclass(frozen=True)
class FormatReport:
    """The report of `check_format` on a data set whose format is sound.

    Attributes:
        rows: How many were rendered.
        calls: Tool calls in them.
        longest: Tokens of the longest row.
        example: The first row as the model will read it.
    """

    rows: int
    calls: int
    longest: int
    example: str


def check_format(dataset: Dataset, tokenizer: PreTrainedTokenizerBase) -> FormatReport:
    """Render every row, and check that calls and results survive the chat template.

    Args:
        dataset: Column `messages`, and `tools` if there are any, as `sft_dataset` makes them.
        tokenizer: One with a chat template.

    Raises:
        ConfigurationError: A call has a null among its arguments, or the template refuses the row,
            drops a call, or encodes its arguments twice. The message names the row and shows it.
    """
    if not len(dataset):
        raise ConfigurationError("the data set has no rows, so there is nothing to train on.")
    _check_template(tokenizer)
    calls, longest, example = 0, 0, ""
    for number, row in enumerate(dataset):
        text = _render_row(row, tokenizer, f"row {number}")
        for name, arguments in _calls(row["messages"]):
            calls += 1
            _check_call(name, arguments, text, number)
        longest = max(longest, len(tokenizer(text, add_special_tokens=False)["input_ids"]))
        example = example or text
    return FormatReport(len(dataset), calls, longest, example)


def _check_template(tokenizer: Any) -> None:
    """Render one call whose words occur nowhere else; what is missing then was dropped."""
    words = ("toolgym_name", "toolgym_key", "toolgym_value", "toolgym_result")
    function = {"name": words[0], "arguments": {words[1]: words[2]}}
    chat = [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": function}],
        },
        {"role": "tool", "name": "tool", "content": words[3]},
    ]
    text = _render_row({"messages": chat}, tokenizer, "an invented row")
    if not all(word in text for word in words):
        raise ConfigurationError(
            "the chat template drops tool calls or their results; use one that renders them, such"
            " as hermes (adapters.training.models.chat_templates.with_chat_template). It"
            f" renders a call and its result as:\n{text}"
        )


def _render_row(row: Mapping[str, Any], tokenizer: Any, name: str) -> str:
    from jinja2 import TemplateError

    tools = row.get("tools")
    tools = json.loads(tools) if isinstance(tools, str) else tools
    try:
        return str(
            tokenizer.apply_chat_template(row["messages"], tools=tools or None, tokenize=False)
        )
    except (TemplateError, TypeError) as problem:
        raise ConfigurationError(
            f"{name}: the chat template refuses it ({problem}). Its messages:\n"
            f"{json.dumps(row['messages'], ensure_ascii=False, default=str)[:_SHOWN]}"
        ) from problem


def _calls(messages: list[Any]) -> Iterator[tuple[str, Any]]:
    """Name and arguments of every call in a transcript, both layouts of a call alike."""
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call.get("function") or call
            yield str(function.get("name")), function.get("arguments")


def _check_call(name: str, arguments: Any, text: str, number: int) -> None:
    encoded = isinstance(arguments, str)
    try:
        decoded = json.loads(arguments) if encoded else arguments
    except json.JSONDecodeError:
        raise _refusal(number, f"the arguments of {name} are no JSON: {arguments}", text) from None
    if not isinstance(decoded, Mapping):
        raise _refusal(number, f"the arguments of {name} are {decoded!r}, not an object", text)
    empty = [key for key, value in decoded.items() if value is None]
    if empty:
        cure = "build it with sft_dataset, or give the column the feature type datasets.Json()"
        raise _refusal(number, f"the call of {name} has null for {', '.join(empty)}; {cure}", text)
    if encoded and arguments not in text and json.dumps(arguments)[1:-1] in text:
        cure = "store them as a dict; this template encodes a string once more"
        raise _refusal(number, f"the arguments of {name} are encoded twice; {cure}", text)
    missing = [str(part) for part in (name, *_leaves(decoded)) if not _appears(part, text)]
    if missing:
        raise _refusal(number, f"the call of {name} lost {', '.join(missing)}", text)


def _leaves(value: Any) -> Iterator[Any]:
    """Every text and number inside some arguments, keys included."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _appears(part: Any, text: str) -> bool:
    """Whether a text has a value, as it is or as JSON writes it, letters escaped or not."""
    spelled = [str(part), json.dumps(part), json.dumps(part, ensure_ascii=False)]
    return any(spelling.strip('"') in text for spelling in spelled)


def _refusal(number: int, what: str, text: str) -> ConfigurationError:
    return ConfigurationError(f"row {number}: {what}. It is rendered as:\n{text[-_SHOWN:]}")
