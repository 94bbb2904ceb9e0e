"""Runs the command `toolgym` as `python -m toolgym`.

Use this form if the script is not on the path, or to choose the interpreter that runs the command.
"""

from toolgym.cli import main

if __name__ == "__main__":
    main()
