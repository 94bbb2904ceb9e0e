"""The agent loop `toolgym_agent` for verl 0.9.1.

It passes each message of the model to the environment unchanged, and appends tokens with verl's
Continuous Token builder. verl's own tool loop drops calls that it cannot parse, cuts results to 256
characters, and cannot end an episode.

An exception excludes the rollout from the update in verl's V1 trainer (`trainer.use_v1=true`, the
default), and ends the training in the older trainer.

`agent_loop.yaml` names the class. This folder must be on PYTHONPATH in all processes of verl. As a
script, this file checks that files of rows can be played on this machine:

    python toolgym_agent.py rows/data/train-00000-of-00001.parquet
"""

import asyncio
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from uuid import uuid4

from toolgym_rollout import Chat, Generated, Limits, RowEpisode, Tokens, on_grid, play, reward_of

from toolgym.errors import ConfigurationError
from toolgym.messages import Message

READ_FOR: Final = "0.9.1"


def check_version() -> None:
    """Check that verl is installed in the supported version.

    Raises:
        ConfigurationError: It is missing, or has another version.
    """
    try:
        installed = version("verl")
    except PackageNotFoundError:
        installed = "none"
    if installed != READ_FOR:
        raise ConfigurationError(
            f"toolgym_agent supports verl {READ_FOR}; installed: {installed}. Agent loops change"
            " between releases, and a wrong mask causes no error. Run pip install"
            f" 'verl=={READ_FOR}'. For another version, compare its AgentLoopBase and"
            " AgentLoopOutput with this file, run tests/examples, and change READ_FOR."
        )


check_version()

from verl.experimental.agent_loop.agent_loop import (  # noqa: E402 - after the check of the version
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)
from verl.utils.profiler import simple_timer  # noqa: E402


class ContinuousChat(Chat):
    """verl's Continuous Token builder, which appends tokens and mask."""

    def __init__(self, loop: AgentLoopBase) -> None:
        self.loop = loop

    async def prompt(self, messages: list[Message], tools: list[dict[str, Any]]) -> list[int]:
        """Return the tokens before the first message, without truncation."""
        builder = self.loop.continuous_token_builder
        ids = await asyncio.to_thread(builder.build_initial_tokens, messages, tools=tools)
        return list(ids)

    async def said(self, tokens: Tokens, message: Generated) -> Tokens:
        """Append a message of the model, with mask 1."""
        so_far = tokens.logprobs
        if message.logprobs is not None and so_far is None:
            so_far = [0.0] * len(tokens.mask)
        merged, mask, logprobs = await self.loop.ct_merge_assistant_token(
            tokens.ids, message.ids, tokens.mask, so_far, assistant_logprobs=message.logprobs
        )
        return Tokens(merged.token_ids, mask, logprobs)

    async def shown(
        self, tokens: Tokens, before: list[Message], after: list[Message], tools: list[Any]
    ) -> Tokens:
        """Append results, with mask 0."""
        merged, mask, logprobs = await self.loop.ct_merge_context_msg(
            before, after, tokens.ids, tokens.mask, tokens.logprobs, tools=tools
        )
        return Tokens(merged.token_ids, mask, logprobs)


class ToolgymAgentLoop(AgentLoopBase):  # type: ignore[misc, unused-ignore]
    """Plays the task of a row in its environment.

    Args:
        message_tokens: Maximum tokens of one message.
        given: Arguments of verl's `AgentLoopBase`.
    """

    def __init__(self, *given: Any, message_tokens: int = 1024, **named: Any) -> None:
        super().__init__(*given, **named)
        rollout = self.rollout_config
        self.limits = Limits(
            prompt=rollout.prompt_length,
            response=rollout.response_length,
            message=message_tokens,
            messages=rollout.multi_turn.max_assistant_turns,
        )

    async def run(
        self, sampling_params: dict[str, Any], priority: int = 0, **row: Any
    ) -> AgentLoopOutput:
        """Play one rollout.

        Raises:
            EnvironmentFault: The machine failed.
            ConfigurationError: The row or a limit is wrong; the message says what to change.
        """
        timing: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        experts: Any = None
        fixed = getattr(self.rollout_config, "full_determinism", False)
        request = f"det-{int(priority)}" if fixed else uuid4().hex

        async def model(ids: list[int], most: int) -> Generated:
            nonlocal experts
            with simple_timer("generate_sequences", timing):
                output = await self.server_manager.generate(
                    request_id=request,
                    prompt_ids=ids,
                    sampling_params={**sampling_params, "max_tokens": most},
                    priority=int(priority),
                )
            # Keep the first and the last version of the weights.
            newest = output.extra_fields.get("max_global_steps")
            extra.update({**output.extra_fields, **extra})
            if newest is not None:
                extra["max_global_steps"] = newest
            timing["num_preempted"] = timing.get("num_preempted", 0) + (output.num_preempted or 0)
            experts = experts if output.routed_experts is None else output.routed_experts
            return Generated(list(output.token_ids), output.log_probs or None)

        episode = await asyncio.to_thread(RowEpisode, row)
        try:
            tokens = await play(episode, model, ContinuousChat(self), self.tokenizer, self.limits)
            figures = episode.figures()
        finally:
            await asyncio.to_thread(episode.env.close)
        score = reward_of(figures)
        told = {**figures, "score": score, "acc": figures["correct"]}
        return AgentLoopOutput(
            prompt_ids=tokens.prompt,
            response_ids=tokens.response,
            response_mask=tokens.mask,
            response_logprobs=tokens.logprobs,
            routed_experts=None if experts is None else experts[: len(tokens.ids)],
            reward_score=score,
            num_turns=len(episode.messages),
            metrics=AgentLoopMetrics(**timing),
            extra_fields={
                **extra,
                "reward_extra_info": told,
                "turn_scores": [on_grid(turn.reward) for turn in episode.env.episode.turns],
                "tool_rewards": [],
            },
        )


def main(files: list[str]) -> None:
    """Begin the first episode of each file of rows."""
    from datasets import load_dataset

    if not files:
        sys.exit("give a file of rows: python toolgym_agent.py ROWS.parquet")
    for file in files:
        kind = "parquet" if file.endswith(".parquet") else "json"
        rows = load_dataset(kind, data_files=file, split="train")
        try:
            episode = RowEpisode(rows[0])
        except ConfigurationError as problem:
            sys.exit(f"{file}: {problem}")
        print(f"{file}: {len(rows)} rows; the first task is {episode.env.task.id}")


if __name__ == "__main__":
    main(sys.argv[1:])
