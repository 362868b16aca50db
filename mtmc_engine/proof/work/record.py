"""Triton launches taken at their source: compiled for a target instead of run, or counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from mtmc_engine.core.device import DeviceCard
from mtmc_engine.proof.wire import Launch
from mtmc_engine.proof.work.ptx import readable_ptx
from mtmc_engine.proof.work.resources import usage

_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_MOST_LAUNCHES = 64


class GridTooLarge(Exception):
    """A grid that the driver refuses."""


class LaunchRecorder:
    """Replaces JITFunction.run: each launch is compiled for `card`, checked and noted.

    The driver must be an AbsentGpu. `failures` holds the exceptions that it raised itself.
    """

    def __init__(self, card: DeviceCard, report: Callable[[Any], None]) -> None:
        self.card = card
        self.report = report
        self.launches: list[Launch] = []
        self.failures: list[BaseException] = []
        self._known: set[Any] = set()

    def install(self) -> None:
        original = JITFunction.run
        recorder = self

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            return recorder.launch(original, kernel, args, grid, kwargs)

        JITFunction.run = run

    def launch(
        self, original: Any, kernel: Any, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]
    ) -> Any:
        bound = _bound(kernel, args, kwargs)
        constants = _constants(kernel, bound)
        words = _configuration(constants, kwargs)
        self.report({"kernel": kernel.__name__, "configuration": words})
        sizes: tuple[int, ...] = ()
        compiled = None
        try:
            sizes = tuple(int(n) for n in (grid(bound) if callable(grid) else grid))
            _check_grid(sizes)
            compiled = original(kernel, *args, grid=grid, warmup=True, **kwargs)
            shared = int(compiled.metadata.shared)
            if shared > self.card.shared_bytes:
                raise OutOfResources(shared, self.card.shared_bytes, "shared memory")
        except Exception as error:
            self.failures.append(error)
            failed = Launch(kernel.__name__, words, sizes, constants, error=str(error)[:4000])
            self._note(failed, compiled)
            raise
        self._note(Launch(kernel.__name__, words, sizes, constants), compiled)
        return compiled

    def _note(self, launch: Launch, compiled: Any) -> None:
        """Keeps a launch, once, with what the compiled kernel needs."""
        key = (launch.kernel, launch.configuration, launch.grid, launch.error)
        if key in self._known or len(self.launches) >= _MOST_LAUNCHES:
            return
        self._known.add(key)
        if compiled is not None:
            used = usage(compiled.asm["cubin"])
            launch = replace(
                launch,
                registers=used.registers if used else None,
                spill_bytes=used.spill_bytes if used else None,
                shared_bytes=int(compiled.metadata.shared),
                ptx=readable_ptx(compiled.asm["ptx"]),
            )
        self.launches.append(launch)


def _bound(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, defaults filled in, as a callable grid sees them."""
    bound: dict[str, Any] = {p.name: p.default for p in kernel.params if p.has_default}
    for parameter, value in zip(kernel.params, args, strict=False):
        bound[parameter.name] = value
    return bound | kwargs


def _constants(kernel: Any, bound: dict[str, Any]) -> dict[str, Any]:
    """Values of the compile-time parameters, as JSON."""
    found = {}
    for parameter in kernel.params:
        if parameter.is_constexpr and parameter.name in bound:
            value = getattr(bound[parameter.name], "value", bound[parameter.name])
            found[parameter.name] = value if isinstance(value, int | float | str) else str(value)
    return found


def _configuration(constants: dict[str, Any], kwargs: dict[str, Any]) -> str:
    """ "BLOCK_M=128, BLOCK_N=256, num_warps=8, num_stages=4"."""
    options = {k: kwargs[k] for k in ("num_warps", "num_stages", "num_ctas") if k in kwargs}
    return ", ".join(f"{name}={value}" for name, value in (constants | options).items())


def _check_grid(grid: tuple[int, ...]) -> None:
    if len(grid) > 3:
        raise GridTooLarge(f"grid {grid} has {len(grid)} axes; a launch has at most 3")
    for axis, (size, limit) in enumerate(zip(grid, _GRID_LIMITS, strict=False)):
        if size > limit:
            raise GridTooLarge(
                f"grid {grid} has {size} programs on axis {axis}, where {limit} is the limit"
            )
        if size < 0:
            raise GridTooLarge(f"grid {grid} has a negative size on axis {axis}")


class TooManyPrograms(BaseException):
    """A launch that the interpreter would take too long for; no `except Exception` stops it."""


@dataclass
class Budget:
    """Programs that the interpreter may still run: in one case, and in all."""

    case: int
    total: int
    unlimited: bool = False

    def take(self, programs: int) -> None:
        """Raises TooManyPrograms where that exceeds what is left."""
        if not self.unlimited and (programs > self.case or programs > self.total):
            raise TooManyPrograms(programs)
        self.total -= programs


def count_launches(counter: Counter[str], budget: Budget | None = None) -> None:
    """From now on, each kernel that runs to its end is counted by name.

    budget: for the interpreter; each launch takes its programs from it.
    """
    from triton.runtime.interpreter import GridExecutor, InterpretedFunction

    if budget is not None:
        _limit(GridExecutor, budget)
    for owner in (JITFunction, InterpretedFunction):
        original = owner.run

        def run(
            kernel: Any, *args: Any, _original: Callable[..., Any] = original, **kwargs: Any
        ) -> Any:
            result = _original(kernel, *args, **kwargs)
            counter[kernel.__name__] += 1
            return result

        owner.run = run


def _limit(executor: Any, budget: Budget) -> None:
    """Looks at each grid of the interpreter before it runs."""
    original = executor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        grid = self.grid
        if callable(grid):
            names = dict(zip(self.arg_names, args, strict=False))
            grid = grid({**names, **kwargs})
        budget.take(math.prod(int(size) for size in grid))
        return original(self, *args, **kwargs)

    executor.__call__ = call
