"""Text generation with a causal language model in this process.

`Engine.generate` extends token sequences turn by turn. The engine samples a turn, then appends the
tokens that the caller returns as an answer. Trainers, evaluations, policies and operators use the
engine.

This package requires torch and transformers (the extra `train`). `import toolgym` does not import
this package.
"""

from toolgym.generation.decoder import check_model
from toolgym.generation.engine import Engine, Generation, Reply
from toolgym.generation.models import context_length, load, stop_ids

__all__ = ["Engine", "Generation", "Reply", "check_model", "context_length", "load", "stop_ids"]
