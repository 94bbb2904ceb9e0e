"""The reference trainer: GRPO in one file, without TRL. Tests compare the TRL trainer with it.

    train         the whole training loop in one file
    play          rollouts: episodes that a model plays
    losses        losses by name
    config        settings
    chat          prompts and tool results as tokens
    processes     data parallelism
    checkpoint    checkpoints from which a run resumes
    evaluation    evaluations of a run, played as rollouts

The trainer requires torch, transformers, and a causal language model with a KV cache and a chat
template. Modules that both trainers use are in `adapters.training`.
"""
