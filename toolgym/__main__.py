"""`python -m toolgym` is the command `toolgym`.

For where its script is not on the path, or to choose the interpreter that runs it.
"""

from toolgym.cli import main

if __name__ == "__main__":
    main()
