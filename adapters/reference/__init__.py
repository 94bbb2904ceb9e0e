"""The reference trainer: GRPO in one file, without TRL, and a check on the TRL trainer.

    train         the whole training loop, read from top to bottom
    play          rollouts: episodes that a model plays
    losses        the losses by name
    config        the settings
    chat          prompts and tool results as tokens
    processes     several processes
    checkpoint    folders from which a run resumes
    evaluation    evaluations of a run, played as rollouts

It needs torch and transformers, any causal language model that keeps keys and values, and its chat
template. Modules that other trainers use too are in `adapters.training`.
"""
