"""Triton source that a person or a language model wrote: its regions, and rewrites of it."""
