"""The HTTP server that `toolgym serve` and `toolgym mcp` share, with its access checks.

`guard` needs starlette and uvicorn, which the extras of these commands install; importing this
package does not need them.
"""
