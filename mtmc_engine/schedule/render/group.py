"""One templated group as kernel and launcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Templated
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.ops import Unsupported
from mtmc_engine.schedule.render.matmul import render_matmul
from mtmc_engine.schedule.render.names import RESERVED, Names, identifier, tensor_names
from mtmc_engine.schedule.render.pointwise import render_pointwise
from mtmc_engine.schedule.render.rows import render_rows
from mtmc_engine.schedule.render.rows_loop import render_rows_loop
from mtmc_engine.schedule.render.split import render_split
from mtmc_engine.schedule.render.unit import GroupText, Unit
from mtmc_engine.schedule.templates.fit import fitted

_TEMPLATES = {
    "pointwise": render_pointwise,
    "rows": render_rows,
    "rows_loop": render_rows_loop,
    "split": render_split,
}

# Names that kernels use for indices, masks and sizes.
_KERNEL_WORDS = """
row rows cols mask row_mask col_mask offsets n_rows n_cols n_elements outer inner reduced n_outer
n_inner n_reduced inner_mask reduced_mask inner_blocks col_blocks row_block col_block grid start
block split first last share n_splits shares share_mask reduced_blocks
tanh log1p expm1 multiply round_half_even block_offsets offsets_2 BLOCK_SIZE BLOCK_ROWS BLOCK_COLS
BLOCK_REDUCED BLOCK_INNER ROWS_PER_PROGRAM BLOCK_M BLOCK_N BLOCK_K GROUP_M EVEN_K
"""
_PRODUCT_WORDS = """
M N K a b a_ptrs b_ptrs acc k ks tiles_m tiles_n tile_m tile_n group within group_rows batch n_batch
"""


def render_group(
    graph: Graph,
    nodes: Sequence[str],
    form: Templated,
    *,
    taken: Iterable[str] = (),
    precision: str = "ieee",
    whole: str = "",
) -> GroupText:
    """Kernel and launcher of one group.

    taken:     names of the module that the launcher must not have.
    precision: of float32 matrix products, "ieee" or "tf32".
    whole:     name of the task where the group is all of it, "" otherwise.
    Raises Unsupported where the template does not fit the group.
    """
    program, space = fitted(graph, nodes)
    label = label_of(graph, nodes)
    if label.endswith("…") and whole:
        label = whole
    launcher = launcher_name(label, set(taken))
    product = form.template == "matmul"
    words = _KERNEL_WORDS + _PRODUCT_WORDS * product
    names = Names([*words.split(), launcher])
    unit = Unit(
        launcher,
        summary(label, form, folded=space.folded),
        program,
        space,
        tensor_names(graph, program.loads, names),
        names,
    )
    if product:
        return render_matmul(unit, form.params, precision)
    return _TEMPLATES[form.template](unit, form.params)


def is_writable(graph: Graph, nodes: Sequence[str], form: Templated) -> bool:
    """Whether a group can be rendered in this form: a space may fit where an index does not."""
    try:
        render_group(graph, nodes, form)
    except Unsupported:
        return False
    return True


def launcher_name(label: str, taken: set[str]) -> str:
    """The label as a function's name; a taken one gets a prefix, then a number."""
    name = identifier(label.replace("…", "fused")).lower()
    if name not in taken | RESERVED and f"{name}_kernel" not in taken:
        return name
    return Names(taken | {kernel.removesuffix("_kernel") for kernel in taken}).fresh(
        f"fused_{name}"
    )


TITLES = {
    "gelu": "GELU",
    "silu": "SiLU",
    "relu": "ReLU",
    "rms norm": "RMS norm",
    "swiglu": "SwiGLU",
    "geglu": "GEGLU",
    "…": "and what follows",
}


def summary(label: str, form: Templated, *, folded: bool = False) -> str:
    """The launcher's docstring. folded: whether the group reduces rows."""
    words = ", ".join(TITLES.get(word, word) for word in label.split("+"))
    how = {
        "pointwise": "in one pass over the elements",
        "rows": "with whole rows in registers",
        "rows_loop": "in blocks along the row",
        "split": "with programs that share a row",
        "matmul": "on whole rows of a product" if folded else "as one tiled product",
    }[form.template]
    return f"{words[0].upper()}{words[1:]} {how}."
