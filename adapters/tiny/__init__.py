"""The tiny model: a small transformer that is built and trained from scratch.

It is the default model of both trainers and requires neither a hub nor pretrained weights. A
tokenizer is trained on transcripts of the environment in about a second. A transformer of half a
million parameters then learns from demonstrations in about a minute. Reinforcement learning
improves the model within minutes on two CPU cores.
"""
