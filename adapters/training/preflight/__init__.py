"""Preflight: can this model learn anything in this environment, before anything is spent on it?

Read `run` first, then `chat_format` (is a call understood?), `sample` (what does it do?) and
`judge` (go, or no-go).
"""

from adapters.training.preflight.run import Scope, preflight

__all__ = ["Scope", "preflight"]
