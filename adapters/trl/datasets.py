"""Data sets for TRL: prompts for `GRPOTrainer`, one row per task, and demonstrations.

A row identifies its task, so that all rollouts of a group get the same question. TRL repeats the
row for each rollout and passes it to `reset`, which returns the question. TRL appends the question
to the last message, so the user message of a row is empty. Without a task id, the members of a
group could get different questions, and comparing their rewards would be meaningless.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.training.models.demonstrations import (
    first_tries,
    play_episodes,
    playable_tasks,
    transcript,
)
from toolgym import policies, registration
from toolgym.calls import ToolCall, parse_calls
from toolgym.env import ToolEnv
from toolgym.errors import ConfigurationError
from toolgym.messages import Message, system_prompt
from toolgym.policies import Policy

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def training_dataset(
    env_id: str,
    *,
    n: int | None = None,
    seed: int = 0,
    environment: str | None = None,
    **env_kwargs: Any,
) -> Dataset:
    """Return prompts for `GRPOTrainer(train_dataset=...)`.

    Args:
        env_id: A registered `ToolEnv`.
        n: Number of tasks; None means all. A task is checked before it is played. If a task is not
            playable, the next playable task of the data set is played instead.
        seed: Seed of the order of the tasks and of the choice of `n` tasks.
        environment: Name of the environment in `GRPOTrainer(environment_factory={...})`, which adds
            a column `environment`. `datasets.concatenate_datasets` joins the data sets of several
            environments.
        env_kwargs: Arguments for `gym.make`, such as `split`. Pass the same arguments to
            `environment_factory`.

    Returns:
        Columns `prompt` (a system message and a user message without content), `task_id`, and
        `environment` if it is given.

    Raises:
        ConfigurationError: If `n` is below 1, or no task is playable.
    """
    from datasets import Dataset, Features, List, Value

    env = registration.make(env_id, **env_kwargs)
    # Raises an error if there is none.
    playable_tasks(env.tasks, 1 if n is None else min(n, 1), seed)
    tasks = env.tasks.shuffle(seed)[:n]
    message = {"role": Value("string"), "content": Value("string")}
    features = Features({"prompt": List(message), "task_id": Value("string")})
    columns = {"prompt": [open_prompt(env)] * len(tasks), "task_id": tasks.ids}
    if environment is not None:
        features["environment"] = Value("string")
        columns["environment"] = [environment] * len(tasks)
    return Dataset.from_dict(columns, features=features)


def open_prompt(env: ToolEnv[Any]) -> list[Message]:
    """Return the prompt of every row, to which TRL appends the question."""
    return [{"role": "system", "content": system_prompt(env)}, {"role": "user", "content": ""}]


# Arrow stores a column of dicts as one struct with the keys of all rows, so `{"sql": ...}` comes
# back as `{"sql": ..., "table_name": null, "value": null}`. A chat template prints the nulls, and a
# model that is trained on them sends them in every call. Here both columns have the feature type
# `Json`, which keeps each message unchanged, through `map`, `concatenate_datasets`, parquet and
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
    """Return demonstrations for `SFTTrainer`, or for any loop that renders chat messages.

    Args:
        env_id: Id of a registered `ToolEnv`.
        n: Number of tasks; None means all.
        seed: Seed of the order of tasks and of the policy's situations.
        policy: The policy that plays. None means the environment's expert, and only its correct
            episodes are kept. For any other policy, every scored episode is kept. An empty action
            ends the episode.
        final: Text of a final assistant turn. TRL's own tool loop continues until a turn without a
            call, so the model has to learn to produce one. None adds no turn.
        env_kwargs: Arguments for `gym.make`.

    Returns:
        Columns `messages` and `tools`. The tools are the environment's schemas, which prompts of
        evaluations and of `Rollouts` also contain. A turn with an error or a repair has
        `"weight": 0`. `SFTTrainer` ignores the weight;
        `adapters.training.models.tokenized_examples` uses it.

    Raises:
        ConfigurationError: If `n` is below 1, no task is playable, or the environment has no
            expert.
        EnvironmentFault: If the environment failed.
    """
    from datasets import Dataset, Features, Json, List

    env = registration.make(env_id, **env_kwargs)
    player = policies.ExpertPolicy() if policy is None else policy
    ids = playable_tasks(env.tasks, n, seed).ids
    rows = [
        transcript(env, final)
        for _ in play_episodes(env, player, first_tries(ids, seed))
        if env.episode.ledger.correct or (policy is not None and not env.episode.ledger.faulted)
    ]
    columns = {"messages": rows, "tools": [env.tool_schemas()] * len(rows)}
    features = Features({"messages": List(Json()), "tools": List(Json())})
    return Dataset.from_dict(columns, features=features)


# The format of supervised data. Three defects spoil training without an error: calls whose
# arguments were padded with nulls, templates that drop tool calls, and arguments that are encoded
# twice, so that the model learns to write a JSON string instead of an object.

_SHOWN = 1500  # characters


@dataclass(frozen=True)
class FormatReport:
    """The report of `check_format` on a data set with a valid format.

    Attributes:
        rows: Number of rows.
        calls: Number of tool calls in the rows.
        longest: Number of tokens of the longest row.
        example: The first row as the model reads it.
    """

    rows: int
    calls: int
    longest: int
    example: str


def check_format(dataset: Dataset, tokenizer: PreTrainedTokenizerBase) -> FormatReport:
    """Check that every call in a data set can be parsed from the tokens that a model is trained on.

    Turns with a `weight` of 0 are excluded from training and are not checked.

    Args:
        dataset: A data set with the columns `messages` and `tools`, as made by `sft_dataset`.
        tokenizer: A tokenizer with a chat template.

    Raises:
        ConfigurationError: If a call is invalid (for example, an argument is null), or if the
            template cannot render the row, drops a call or a result, or encodes arguments twice.
            The message shows the row.
    """
    from jinja2 import TemplateError

    from adapters.training.models.tokenized_examples import examples_of, learned_turns

    if not len(dataset):
        raise ConfigurationError("the data set has no rows.")
    calls, longest, texts = 0, 0, list[str]()
    for number, row in enumerate(dataset):
        if not {"messages", "tools"} <= row.keys():
            raise ConfigurationError("the data set must have the columns messages and tools.")
        messages = [{k: v for k, v in m.items() if v is not None} for m in row["messages"]]
        tools = json.loads(row["tools"]) if isinstance(row["tools"], str) else row["tools"]
        spoken = [m for m in messages if m["role"] == "assistant" and m.get("weight", 1)]
        text, problem = json.dumps(messages, default=str), ""
        try:
            text = str(tokenizer.apply_chat_template(messages, tools=tools, tokenize=False))
            examples = list(examples_of(messages, tools, tokenizer))
            turns = [turn for each in examples for turn in learned_turns(each, tokenizer)]
            for message, turn in zip(spoken, turns, strict=True):
                meant, read = parse_calls(message, tools), parse_calls(turn, tools)
                calls += len(meant)
                for call in meant:
                    fault = call.error.message if call.error else ", ".join(call.repairs)
                    if fault and not problem:
                        problem = f"the call of {call.name} is faulty ({fault}). Make the data set"
                        problem += " with sft_dataset, or give the column the feature type Json()"
                if meant != read:
                    problem = problem or f"{_shown(meant)} is read back as {_shown(read)}"
        except (ConfigurationError, TemplateError, TypeError, ValueError) as refusal:
            problem = f"the chat template cannot render it: {str(refusal).rstrip('.')}"
        results = [str(m["content"]) for m in messages if m["role"] == "tool"]
        if any(each not in text and json.dumps(each)[1:-1] not in text for each in results):
            problem = problem or "the chat template drops results of tools"
        if problem:
            raise ConfigurationError(
                f"row {number}: {problem}. Use a template that renders tool calls unchanged, such"
                " as hermes (adapters.training.models.chat_templates.with_chat_template). The row"
                f" is rendered as:\n{text[-_SHOWN:]}"
            )
        longest = max(longest, len(tokenizer(text, add_special_tokens=False)["input_ids"]))
        texts = texts or [text]
    return FormatReport(len(dataset), calls, longest, texts[0])


def _shown(calls: Sequence[ToolCall]) -> str:
    shown = (f"{call.name}({call.arguments}) {', '.join(call.repairs)}".rstrip() for call in calls)
    return "; ".join(shown) or "no call"
