"""Environments for verifiers, the library of environments that prime-rl and its hub use.

`toolgym export verifiers ENV_ID --out DIR` writes a package in the hub's layout, and `vf-eval` and
`vf-validate` run it; it is a few lines over what lies here.

Read `harness` (how the model is asked), `environment` (tasks, and one episode), then `package`
(what the command writes). The first two need the extra `verifiers`; importing this package and the
last one does not.
"""
