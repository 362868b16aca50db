"""One templated group as kernel and launcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtmc_engine.core.graph import Graph
from mtmc_engine.core.program import Templated
from mtmc_engine.schedule.labels import label_of
from mtmc_engine.schedule.render.matmul import render_matmul
from mtmc_engine.schedule.render.names import RESERVED, Names, identifier, tensor_names
from mtmc_engine.schedule.render.pointwise import render_pointwise
from mtmc_engine.schedule.render.rows import render_rows
from mtmc_engine.schedule.render.rows_loop import render_rows_loop
from mtmc_engine.schedule.render.unit import GroupText, Unit
from mtmc_engine.schedule.templates.space import product_space, space_of
from mtmc_engine.schedule.templates.trace import trace

_TEMPLATES = {"pointwise": render_pointwise, "rows": render_rows, "rows_loop": render_rows_loop}

# Names that kernels use for indices, masks and sizes.
_KERNEL_WORDS = """
row rows cols mask row_mask col_mask offsets n_rows n_cols n_elements outer inner reduced n_outer
n_inner n_reduced inner_mask reduced_mask inner_blocks col_blocks row_block col_block grid M N K
a b a_ptrs b_ptrs acc k ks tiles_m tiles_n tile_m tile_n group within group_rows start batch n_batch
tanh log1p expm1
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
    program = trace(graph, nodes)
    label = label_of(graph, nodes)
    if label.endswith("…") and whole:
        label = whole
    launcher = launcher_name(label, set(taken))
    names = Names([*_KERNEL_WORDS.split(), launcher])
    product = form.template == "matmul"
    unit = Unit(
        launcher,
        summary(label, form),
        program,
        product_space(program) if product else space_of(program),
        tensor_names(graph, program.loads, names),
        names,
    )
    if product:
        return render_matmul(unit, form.params, precision)
    return _TEMPLATES[form.template](unit, form.params)


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


def summary(label: str, form: Templated) -> str:
    """The launcher's docstring."""
    words = ", ".join(TITLES.get(word, word) for word in label.split("+"))
    how = {
        "pointwise": "in one pass over the elements",
        "rows": "with whole rows in registers",
        "rows_loop": "in blocks along the row",
        "matmul": "as one tiled product",
    }[form.template]
    return f"{words[0].upper()}{words[1:]} {how}."
