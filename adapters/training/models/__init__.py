"""Language models: loading, generating, imitating.

Read `chat_policy` first; `supervised` is the warm-up on transcripts that `demonstrations` plays, as
token ids by `tokenized_examples`.
"""
