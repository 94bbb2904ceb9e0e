"""Environments for verifiers, the library of environments that prime-rl and its hub use.

`toolgym export verifiers ENV_ID --out DIR` writes a package in the hub's layout, which imports from
here and which `vf-eval` and `vf-validate` run. `harness` sends requests to the model, and
`environment` holds the tasks and plays an episode. They need the extra `verifiers`; importing this
package does not.
"""
