"""The fast paths (numba, on the CPU) and their plain references (torch, on any device)."""
