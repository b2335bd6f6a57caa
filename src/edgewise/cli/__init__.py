"""The command line: each command one module; no logic of its own."""

import os
import signal


def main() -> None:
    """Run a command."""
    # Ctrl-C while modules are imported: nothing is open yet, so there is nothing to clean up.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from edgewise.cli.app import main as run

    run()


__all__ = ["main"]
