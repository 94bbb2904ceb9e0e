"""A model that answers in SQL, warmed up in half a minute and trained by the reference trainer.

`tiny_start` makes what a training begins with, `tiny_grpo` trains and measures.
"""
