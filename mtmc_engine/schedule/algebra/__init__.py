"""Rewriting of the operator graph by algebra: rules, and the graph that they lead to."""

from mtmc_engine.schedule.algebra.rewritten import rewritten

__all__ = ["rewritten"]
