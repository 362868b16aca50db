"""Rendering: schedules as readable Python modules with Triton kernels."""

from mtmc_engine.schedule.render.group import render_group
from mtmc_engine.schedule.render.module import render

__all__ = ["render", "render_group"]
