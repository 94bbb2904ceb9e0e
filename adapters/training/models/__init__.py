"""Language models: loading, generating, supervised training, and what computes gradients.

Read `chat_policy` first; `supervised` trains on transcripts that `demonstrations` plays, tokenized
by `tokenized_examples`. Both trainings compute by `token_log_probs` and update by `master_weights`.
"""
