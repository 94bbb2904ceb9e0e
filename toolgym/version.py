"""The version of the installed distribution `toolgym`."""

from importlib.metadata import version

__version__ = version("toolgym")
