"""Templates: which kernel form fits a group of operators, and with which parameters."""

from mtmc_engine.schedule.templates.choose import lowering
from mtmc_engine.schedule.templates.neighbours import program_count, tile_code, variants

__all__ = ["lowering", "program_count", "tile_code", "variants"]
