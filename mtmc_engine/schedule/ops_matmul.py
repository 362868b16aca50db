"""Rules of matrix products."""

# ruff: noqa: PLR0917 - rules take the positional arguments of their ATen operators

from __future__ import annotations

from mtmc_engine.schedule import ops_arithmetic as arithmetic
from mtmc_engine.schedule.ops import require, rule
from mtmc_engine.schedule.templates import functions as fn
from mtmc_engine.schedule.templates.axes import Dim, leaves, unify
from mtmc_engine.schedule.templates.structure import diagonal_of, triangle_of
from mtmc_engine.schedule.templates.tensors import Builder, Number, Product, Tensor, promote


@rule("linear.default")
def linear(b: Builder, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product = matrix_product(b, input, weight, transposed=True)
    return product if bias is None else b.arith(fn.ADD, product, bias)


@rule("mm.default", "matmul.default", "bmm.default")
def matmul(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    if len(other.dims) == 1:
        return mv(b, self, other)
    if len(other.dims) > 2:
        return batched_product(b, self, other)
    return matrix_product(b, self, other, transposed=False)


@rule("addmm.default")
def addmm(
    b: Builder, self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    product = matrix_product(b, mat1, mat2, transposed=False)
    if alpha != 1:
        product = arithmetic.mul(b, product, alpha)
    return arithmetic.add(b, product, self, beta)


def matrix_product(b: Builder, left: Tensor, right: Tensor, transposed: bool) -> Tensor:
    """[…, K] times [K, N], or [N, K] where `transposed`, as a value over […, N]."""
    if len(right.dims) == 2 and len(left.dims) >= 2:
        matrix = right if transposed else Tensor(right.value, right.dims[::-1])
        if not matrix.dims[0] or not any(left.dims[:-1]):
            return row_products(b, left, matrix)
    scaled = None if transposed else _scaled(b, left, right)
    if scaled is not None:
        return scaled
    left, band = triangle_of(left)
    require(left.value.kind == right.value.kind == "load", "a product of computed tensors")
    require(len(right.dims) == 2 and len(left.dims) >= 2, "a product of such ranks")
    require(left.dtype == right.dtype == "float32", "a product of such types")
    n, k = right.dims if transposed else right.dims[::-1]
    left_at, right_at = b.storage(left), b.storage(right)
    require(len(left.dims) == 2 or left_at == sorted(left_at), "a product of a permuted tensor")
    require(all(left.dims) and bool(n and k), "a product along a dimension of size one")
    require(left.shape[-1] == right.shape[1 if transposed else 0], "a product of unlike sizes")
    n_at = 0 if transposed else 1
    product = Product(
        left.value.source,
        right.value.source,
        left_rows=left_at[-2],
        left_k=left_at[-1],
        right_k=right_at[1 - n_at],
        right_columns=right_at[n_at],
        band=band,
    )
    dims: tuple[Dim, ...] = (*left.dims[:-1], n)
    axes = tuple(axis for dim in dims for axis in leaves(dim))
    return Tensor(b.multiply(product, axes), dims)


def _scaled(b: Builder, left: Tensor, right: Tensor) -> Tensor | None:
    """A product with a diagonal matrix as a scaling of rows or columns; None for other ones."""
    if not (len(left.dims) == len(right.dims) == 2):
        return None
    rows, columns = diagonal_of(left), diagonal_of(right)
    if rows is not None:
        unify(left.dims[0], right.dims[0])
        return b.arith(fn.MUL, Tensor(rows, (left.dims[0], ())), right)
    if columns is not None:
        unify(left.dims[1], right.dims[0])
        return b.arith(fn.MUL, left, Tensor(columns, (right.dims[0],)))
    return None


def row_products(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    """Products with one row or one column: each element of the result is a sum over a row.

    left: […, K]. right: [N, K].
    """
    columns = Tensor(left.value, (*left.dims[:-1], (), left.dims[-1]))
    kind = promote(left.dtype, right.dtype)
    return b.reduce("sum", b.arith(fn.MUL, columns, right, dtype=kind), (-1,), False, "product")


@rule("mv.default")
def mv(b: Builder, self: Tensor, vec: Tensor) -> Tensor:
    return b.reduce("sum", b.arith(fn.MUL, self, vec), (-1,), False, "product")


@rule("dot.default", "vdot.default")
def dot(b: Builder, self: Tensor, tensor: Tensor) -> Tensor:
    return b.reduce("sum", b.arith(fn.MUL, self, tensor), (), False, "product")


@rule("baddbmm.default")
def baddbmm(
    b: Builder, self: Tensor, batch1: Tensor, batch2: Tensor, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    product = batched_product(b, batch1, batch2)
    if alpha != 1:
        product = arithmetic.mul(b, product, alpha)
    return product if beta == 0 else arithmetic.add(b, product, self, beta)


def batched_product(b: Builder, left: Tensor, right: Tensor) -> Tensor:
    """[…, M, K] times […, K, N] with the same leading dimensions."""
    require(left.value.kind == right.value.kind == "load", "a product of computed tensors")
    require(left.dtype == right.dtype == "float32", "a product of such types")
    rank = len(left.dims)
    require(rank == len(right.dims) and all(left.dims) and all(right.dims), "such dimensions")
    require(left.shape[:-2] == right.shape[:-2], "a product that repeats one side")
    require(left.shape[-1] == right.shape[-2], "a product of unlike sizes")
    left_at, right_at = b.storage(left), b.storage(right)
    leading = list(range(rank - 2))
    require(left_at[:-2] == right_at[:-2] == leading, "a product along other dimensions")
    for one, other in zip(left.dims[:-2], right.dims[:-2], strict=True):
        unify(one, other)
    product = Product(
        left.value.source,
        right.value.source,
        left_rows=left_at[-2],
        left_k=left_at[-1],
        right_k=right_at[-2],
        right_columns=right_at[-1],
        batched=True,
    )
    dims: tuple[Dim, ...] = (*left.dims[:-1], right.dims[-1])
    axes = tuple(axis for dim in dims for axis in leaves(dim))
    return Tensor(b.multiply(product, axes), dims)
