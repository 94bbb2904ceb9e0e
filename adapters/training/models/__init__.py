"""Language models: loading, generating, imitating.

Read `chat_policy` first, then `generation`; `supervised` is the warm-up on the transcripts that
`demonstrations` plays.
"""
