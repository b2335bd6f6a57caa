"""``python -m edgewise``: the command line."""

from edgewise.cli.app import main

if __name__ == "__main__":
    main()
