"""The reference trainer: GRPO in one file, without TRL. Tests compare the TRL trainer with it.

    train: The entire training loop, in one file.
    play: Rollouts, that is, episodes that a model plays.
    losses: Policy losses, which are chosen by name.
    chat: Conversion of prompts and tool results to tokens.
    processes: Data parallelism.
    checkpoint: Checkpoints from which a run resumes.
    evaluation: Evaluations of a run, played as rollouts.
    preflight: Check before training whether a model can learn in an environment.

The trainer requires torch, transformers, and a causal language model with a KV cache and a chat
template. Modules that both trainers use are in `adapters.training`.
"""
