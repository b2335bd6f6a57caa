"""Operators, normalisations, layers and networks."""
