"""The reference trainer: GRPO without TRL, short enough to read, and a check on the TRL trainer.

In the order in which to read it; each file is one idea:

    trainer                     the training loop
    config                      its settings
    distributed, checkpoint     several processes; the state that a run resumes from
    batch_sampling              the tasks and groups of a batch, with dynamic sampling
    generation                  batched episodes: the decode loop and the token sampler
    chat, decoder               the chat template, and the model with its KV cache
    rollout                     one finished rollout, and many as a batch of tensors
    advantages                  the advantages of a batch
    learner, losses             the forward pass, the loss and its settings, the KL penalty
    kl_reference                the model as it was when training began
    optimizer                   AdamW on float32 weights

It needs torch and transformers, any causal language model that keeps keys and values, and its chat
template. What it shares with other trainers is in `adapters.training`.
"""
