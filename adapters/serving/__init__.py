"""The HTTP server that `toolgym serve` and `toolgym mcp` share, with its access checks.

`guard` needs starlette and uvicorn, which the extras of these commands install. Importing this
package does not.
"""
