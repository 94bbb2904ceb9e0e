"""The tiny model, the default of both trainers, which is built and trained from scratch.

It needs no hub and no pretrained weights. A tokenizer is trained on transcripts of the environment
in a second, a transformer of half a million parameters learns from demonstrations in a minute, and
reinforcement learning improves it, on two CPU cores, in minutes.
"""
