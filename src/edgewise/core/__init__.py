"""What every other folder builds on: errors, files, seeds, settings."""
