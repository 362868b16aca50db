"""Compile-time flags that say whether a block divides a size, worked out at each launch."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from mtmc_engine.schedule.source.code import Edit, dotted, names_in
from mtmc_engine.schedule.source.listing import Kernel, Launch, Listing
from mtmc_engine.schedule.source.rewrite import appended


def flag_name(size: str) -> str:
    """ "EVEN_N_COLS" for "n_cols"."""
    return f"EVEN_{size.upper()}"


Flag = tuple[str, str, bool]
"""Size, block, and whether there is a single block."""


def can_have_flags(listing: Listing, kernel: Kernel, flags: Mapping[str, Flag]) -> bool:
    """Whether a kernel can get these flags, by name."""
    params = kernel.node.params
    taken = {p.name for p in kernel.parameters} | names_in(kernel.node.body)
    launches = listing.launches_of(kernel)
    is_plain = isinstance(params.star_arg, cst.MaybeSentinel) and params.star_kwarg is None
    return (
        is_plain
        and not params.kwonly_params
        and bool(launches)
        and all(launch.whole for launch in launches)
        and "heuristics" not in kernel.decorators
        and _prefix(kernel) != ""
        and not any(name in taken for name in flags)
        and all(_is_told(launch, flag) for launch in launches for flag in flags.values())
    )


def _is_told(launch: Launch, flag: Flag) -> bool:
    """Whether size and block reach the place where a flag is worked out: defaults do not."""
    size, block, _ = flag
    return size in launch.arguments and (block in launch.arguments or launch.kernel.is_tuned)


def with_flags(listing: Listing, kernel: Kernel, flags: Mapping[str, Flag]) -> list[Edit]:
    """A kernel and its launches with flags.

    The launch works them out where it has size and block by name; triton.heuristics does where
    the block may be tuned, or stands in the launch as a number that another step may change.
    """
    code = listing.code
    word = sorted(listing.language, key=len)[0]
    has_default = any(p.default is not None for p in kernel.parameters)
    ending = " = False" if has_default else ""
    params = [p.node for p in kernel.parameters]
    texts = [f"{name}: {word}.constexpr{ending}" for name in flags]
    edits = appended(listing, params, *texts)
    launches = listing.launches_of(kernel)
    if all(_says(launch, flag) for launch in launches for flag in flags.values()):
        for launch in launches:
            arguments = [
                f"{name}={_condition(listing, launch, flag)}" for name, flag in flags.items()
            ]
            edits += appended(listing, launch.call.args, *arguments)
        return edits
    pairs = [f'"{name}": lambda args: {_of_arguments(*flag)}' for name, flag in flags.items()]
    decorator = kernel.decorators["jit"]
    at = code.line_start(decorator)
    head = f"@{_prefix(kernel)}heuristics("
    text = f"{head}{{{pairs[0]}}})\n"
    if len(pairs) > 1 or len(text) > 100:
        text = f"{head}\n    {{\n" + "".join(f"        {p},\n" for p in pairs) + "    }\n)\n"
    return [*edits, Edit(at, at, text)]


def _says(launch: Launch, flag: Flag) -> bool:
    """Whether a launch gives the block by name."""
    size, block, _ = flag
    given = launch.arguments.get(block)
    is_named = given is not None and isinstance(given.value, cst.Name)
    return is_named and launch.value(size) is not None and not launch.kernel.is_tuned


def _condition(listing: Listing, launch: Launch, flag: Flag) -> str:
    size, block = launch.value(flag[0]), launch.value(flag[1])
    assert size is not None
    assert block is not None
    one = listing.code.of(size)
    if isinstance(size, cst.BinaryOperation | cst.IfExp):
        one = f"({one})"
    return _test(one, listing.code.of(block), flag[2])


def _of_arguments(size: str, block: str, single: bool) -> str:
    return _test(f'args["{size}"]', f'args["{block}"]', single)


def _test(size: str, block: str, single: bool) -> str:
    return f"{size} == {block}" if single else f"{size} % {block} == 0"


def _prefix(kernel: Kernel) -> str:
    """ "triton." as the kernel's decorator has it; "" where it does not say."""
    decorator = kernel.decorators["jit"].decorator
    name = dotted(decorator.func if isinstance(decorator, cst.Call) else decorator)
    return name.removesuffix("jit")
