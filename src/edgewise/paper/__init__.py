"""The paper's tables: what it printed, what to run, what came out."""
