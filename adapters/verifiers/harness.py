"""A harness that queries the model from this process, with one request per turn.

The chat loops of verifiers are programs that `uv` starts for each turn with packages from a package
index, so every rollout fails if the index cannot be reached. An episode only needs the model's next
message. A harness may run its loop in this process, as here, if every request goes through the
endpoint at which verifiers records the trace.
"""

from __future__ import annotations

from typing import Any, Final

import verifiers.v1 as vf
from openai import APIConnectionError, AsyncOpenAI, OpenAIError
from verifiers.v1.dialects.chat import message_to_wire

NO_CONNECTION: Final = 97
"""Exit status for a lost connection, as opposed to a harness that failed."""


class DirectHarnessConfig(vf.HarnessConfig):  # type: ignore[misc, unused-ignore]
    """The configuration of the harness, which has no options."""


class DirectHarness(vf.Harness[DirectHarnessConfig]):  # type: ignore[misc, unused-ignore]
    """A harness that requests the next message. The conversation is stored in the trace."""

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
        """Request one message. The library verifiers records failures of the model."""
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
