"""Runs the `toolgym` command as `python -m toolgym`.

Use this form if the `toolgym` script is not on the PATH, or to choose the Python interpreter.
"""

from toolgym.cli import main

if __name__ == "__main__":
    main()
