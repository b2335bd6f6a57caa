"""The subcommands of the command line, one module each. No logic, and no heavy import on top."""
