"""Data sets by name, graphs from tables and files, molecules, splits, synthetic graphs."""
