"""Graphs: nodes, edges, channels, features, and the way to other libraries."""
