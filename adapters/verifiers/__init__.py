"""Environments for verifiers, the library of environments that prime-rl and its hub use.

`toolgym export verifiers ENV_ID --out DIR` writes a package in the hub's layout, which imports this
package and can be run with `vf-eval` and `vf-validate`. `harness` sends requests to the model, and
`environment` provides the tasks and runs the episodes. Both modules need the extra `verifiers`;
importing this package does not.
"""
