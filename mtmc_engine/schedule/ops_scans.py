"""Rules of scans."""

from __future__ import annotations

from typing import Any

from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.ops_index import part
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.indexing import new_dim
from mtmc_engine.schedule.templates.scans import scan
from mtmc_engine.schedule.templates.tensors import Builder, Fold, Tensor


def _scan_rule(fold: Fold, hint: str) -> Any:
    def expand(b: Builder, self: Tensor, dim: int, dtype: Any = None) -> Tensor:
        if not self.dims:
            return b.to(self, b.result)
        return b.to(scan(b, fold, b.to(self, b.result), dim, hint), b.result)

    return expand


rule("cumsum.default")(_scan_rule("sum", "running_sum"))
rule("cumprod.default")(_scan_rule("prod", "running_product"))


@rule("diff.default")
def difference(b: Builder, self: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    require(n == 1, "a repeated difference")
    dim %= len(self.dims)
    length = new_dim(self.shape[dim] - 1, "{0} - 1", self.dims[dim])
    return b.arith(fn.SUB, part(b, self, dim, length, 1), part(b, self, dim, length, 0))
