"""Terms that cannot reach the result: what is constant along the axis that is normalised."""

from __future__ import annotations

from mtmc_engine.core.graph import Arg
from mtmc_engine.schedule.algebra.edit import Edit
from mtmc_engine.schedule.algebra.idioms import unshifted
from mtmc_engine.schedule.algebra.rules import rule
from mtmc_engine.schedule.algebra.site import Site, is_number
from mtmc_engine.schedule.classes import word_of

_LAYERS = [f"conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3)]


@rule(
    "shift",
    "what is added to every element of a row cancels in its softmax",
    at=("softmax", "log_softmax"),
)
def shift(site: Site) -> Edit | None:
    """softmax(x + c) = softmax(x) for c constant along the softmax's dimension.

    c is known before the call, so that no infinity or NaN of an input is lost with it, or it is
    the row's maximum.
    """
    node = site.node
    if node.op not in {"aten.softmax.int", "aten.log_softmax.int"}:
        return None
    made = site.maker(node.args[0])
    if made is None or word_of(made) not in {"add", "sub"} or len(made.args) != 2 or made.kwargs:
        return None
    source, term = made.args
    if word_of(made) == "sub" and (plain := unshifted(site, node.args[0], node.args[1])) == source:
        site.put(node, node.op, (plain, *node.args[1:]))
        return site.replaced()
    if word_of(made) == "add" and _is_constant(site, source, node.args[1], made.out[0].shape):
        source, term = term, source
    if not _is_constant(site, term, node.args[1], made.out[0].shape):
        return None
    if site.spec(source) != made.out[0]:
        return None
    site.put(node, node.op, (source, *node.args[1:]))
    return site.replaced()


def _is_constant(site: Site, arg: Arg, dim: int, shape: tuple[int, ...]) -> bool:
    """Whether a term repeats one value along a dimension of a wider one."""
    if is_number(arg):
        return True
    spec = site.spec(arg)
    if spec is None or not site.is_fixed(arg) or shape[dim] == 1:
        return False
    padded = (1,) * (len(shape) - len(spec.shape)) + spec.shape
    return padded[dim] == 1


@rule("cancelled bias", "its bias cancels in the normalisation that follows", at=_LAYERS)
def cancelled_bias(site: Site) -> Edit | None:
    """The bias of a layer is constant over what an instance norm, or a group of one, averages."""
    node, reader = site.node, site.only_reader()
    if site.arg(2) is None or reader is None or len(node.out[0].shape) < 3:
        return None
    match word_of(reader):
        case "instance_norm":
            cancels = reader.args[3] is None and reader.args[5] is True
        case "group_norm":
            cancels = reader.args[1] == node.out[0].shape[1]
        case _:
            cancels = False
    if not cancels or reader.args[0] != f"%{node.name}":
        return None
    site.put(node, node.op, (*node.args[:2], None, *node.args[3:]))
    return site.replaced()
