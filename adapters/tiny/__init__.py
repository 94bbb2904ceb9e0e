"""The tiny model: the embedded default of both trainers, built and trained from nothing.

No hub and no pretrained weights are needed. A tokenizer is trained on transcripts of the
environment in a second, a transformer of half a million parameters learns from demonstrations in a
minute, and reinforcement learning then has something to improve, on two CPU cores, in minutes.
"""
