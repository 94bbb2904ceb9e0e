"""Text generation with a causal language model in this process.

`Engine.generate` continues token sequences, turn by turn: it samples the model's turns and appends
what a caller answers to them. Trainers, evaluations, policies and operators generate with it.

This package imports torch and transformers (the extra `train`); `import toolgym` does not import
it.
"""

from toolgym.generation.decoder import check_model
from toolgym.generation.engine import Engine, Generation, Reply
from toolgym.generation.models import context_length, load, stop_ids

__all__ = ["Engine", "Generation", "Reply", "check_model", "context_length", "load", "stop_ids"]
