"""Proof: gates, variants, integrity, timing and its statistics, estimates."""
