"""A case on the CPU before it is on a GPU: an index out of range there ends the CUDA context."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.call import invoke


def may_index(arguments: Any) -> bool:
    """Whether integers are among the arguments, which may count elements of other tensors."""
    leaves = pytree.tree_leaves(arguments)
    kinds = {leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor)}
    return any(not (k.is_floating_point or k.is_complex or k == torch.bool) for k in kinds)


def rehearse(model: Any, arguments: Sequence[Any], keywords: Sequence[str]) -> None:
    """Calls a copy of the operator on copies of the arguments, all on the CPU.

    Raises what the operator raises.
    """
    here = pytree.tree_map(_here, list(arguments))
    called = copy.deepcopy(model).cpu() if isinstance(model, torch.nn.Module) else model
    with torch.no_grad():
        invoke(called, here, keywords)


def _here(leaf: Any) -> Any:
    return leaf.detach().cpu().clone() if isinstance(leaf, torch.Tensor) else leaf
