"""Triton text of reductions and scans of a block."""

from __future__ import annotations

from mtmc_engine.schedule.templates.tensors import Fold, Value


def fold_text(value: Value, operand: str, folding: str, helpers: set[str]) -> str:
    """The reduction of a block. helpers: takes the device functions that it calls."""
    if value.fold == "prod":
        helpers.add("multiply")
        axis, _, keep = folding.partition(", ")
        return f"tl.reduce({operand}, {axis}, combine_fn=multiply{keep and f', {keep}'})"
    return f"tl.{value.fold}({operand}, {folding})"


def scan_text(value: Value, operand: str, folding: str) -> str:
    """The scan of a block."""
    axis = folding.split(",", maxsplit=1)[0]
    function = {"sum": "cumsum", "prod": "cumprod"}[value.fold]
    reverse = ", reverse=True" if value.reverse else ""
    return f"tl.{function}({operand}, {axis}{reverse})"


def accumulated(fold: Fold, name: str, operand: str) -> str:
    """The statement that takes a block into an accumulator."""
    return {
        "sum": f"{name} += {operand}",
        "prod": f"{name} *= {operand}",
        "max": f"{name} = tl.maximum({name}, {operand})",
        "min": f"{name} = tl.minimum({name}, {operand})",
    }[fold]
