"""The reference trainer: small enough to be held in a head, and a yardstick for the other one.

In the order in which to read it; each file is one idea:

    trainer                               the loop, and what a run is made of
    config, loss_config                   its settings
    ready, processes, checkpoint          the model before, beside and after a step
    gathering                             which tasks a batch learns from
    rollout, table                        playing episodes in lock step: tokens in, tokens out
    chat, decoder, cache, draw            what that takes: template, model, memory, chance
    record, batch                         what a finished rollout is, and many as tensors
    comparing                             how much better than the others each was
    learner, losses, divergence           from that to a gradient
    optimizer                             and from that to other weights

It needs torch and transformers, any causal language model that keeps keys and values, and its chat
template. What it shares with other trainers is in `adapters.training`.
"""
