"""The command line: each command one module; no logic of its own."""

from edgewise.cli.app import main

__all__ = ["main"]
