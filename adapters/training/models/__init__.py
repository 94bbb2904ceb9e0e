"""Language models for the trainers: loading, generation, supervised training and gradients.

- `chat_policy` lets a chat model play episodes.
- `demonstrations` plays transcripts, `tokenized_examples` tokenizes them, and `supervised` trains
  on them.
- `token_log_probs` computes log-probabilities for both supervised and reinforcement learning.
- `master_weights` provides the optimizer for both kinds of training.
"""
