"""A harness that asks the model within the process: one request a turn, and nothing else.

The chat loops of verifiers are programs. Each turn starts one anew by `uv`, which fetches their
packages from a package index, and where it cannot every rollout fails. All that an episode needs is
the model's next message. The contract of a harness allows a loop in the process as long as every
request goes through the address that verifiers records at; this one does.
"""

from __future__ import annotations

from typing import Any, Final

import verifiers.v1 as vf
from openai import APIConnectionError, AsyncOpenAI, OpenAIError
from verifiers.v1.dialects.chat import message_to_wire

NO_CONNECTION: Final = 97
"""The exit status by which verifiers tells a lost connection from a harness that failed."""


class DirectHarnessConfig(vf.HarnessConfig):  # type: ignore[misc, unused-ignore]
    """Nothing of its own."""


class DirectHarness(vf.Harness[DirectHarnessConfig]):  # type: ignore[misc, unused-ignore]
    """Asks for the next message; the conversation is that of the trace."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
    ) -> Any:
        """Ask once. What fails at the model is told by verifiers, from what it recorded."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system is not None else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [message_to_wire(message) for message in prompt]
        try:
            async with AsyncOpenAI(base_url=endpoint, api_key=secret) as client:
                await client.chat.completions.create(model=ctx.model, messages=messages)  # type: ignore[arg-type, unused-ignore]
        except APIConnectionError as problem:
            return vf.ProgramResult(NO_CONNECTION, "", str(problem))
        except OpenAIError as problem:
            return vf.ProgramResult(1, "", str(problem))
        return vf.ProgramResult(0, "", "")
