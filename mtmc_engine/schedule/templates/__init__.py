"""Templates: which kernel form fits a group of operators, and with which parameters."""

from mtmc_engine.schedule.templates.choose import lowering
from mtmc_engine.schedule.templates.neighbours import tile_code, variants

__all__ = ["lowering", "tile_code", "variants"]
