"""Files that are written in another coding, ask for other dtypes, or are named like modules."""

import pytest

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPERATOR = """
import torch

def doubled(x):
    return x * 2  # {comment}

def inputs():
    return [torch.randn(6, 45)]
"""


@pytest.mark.parametrize(
    ("coding", "first"),
    [("utf-8-sig", ""), ("latin-1", "# -*- coding: latin-1 -*-"), ("utf-8", "")],
)
async def test_a_file_may_declare_its_coding(coding, first, opened, tmp_path):
    path = tmp_path / "coded.py"
    path.write_bytes((first + OPERATOR.format(comment="größer")).encode(coding))
    task = await opened(path)
    assert [node.op for node in task.graph.nodes] == ["aten.mul.Tensor"]


async def test_a_coding_that_is_none_is_said_in_one_sentence(opened, tmp_path):
    path = tmp_path / "coded.py"
    path.write_bytes(("# -*- coding: klingon -*-" + OPERATOR.format(comment="")).encode())
    with pytest.raises(Exception, match=r"coded\.py is not Python text"):
        await opened(path)


@pytest.mark.parametrize("name", ["torch", "triton", "random", "mtmc_engine"])
async def test_a_file_named_like_a_module_has_another_module_name(name, opened, tmp_path):
    path = tmp_path / f"{name}.py"
    path.write_text(OPERATOR.format(comment=""))
    assert (await opened(path)).module == f"reference_{name}"


@pytest.mark.parametrize("name", ["torch", "triton", "random"])
async def test_a_sibling_named_like_a_module_does_not_hide_it(name, opened, tmp_path):
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('hidden')\n")
    path = tmp_path / "beside.py"
    path.write_text(OPERATOR.format(comment=""))
    assert (await opened(path)).entry == "doubled"


async def test_weights_too_large_to_be_made_take_the_declared_dtype(opened, written):
    path = written("""
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(20000, 12000)
                self.b = nn.Linear(20000, 12000)
                self.b.weight = self.a.weight

            def forward(self, x):
                return self.a(x) + self.b(x)

        def get_inputs():
            return [torch.randn(8, 20000)]

        TASK = {"dtypes": ["bfloat16", "float16"]}
    """)
    task = await opened(path)
    dtypes = {value.spec.dtype for value in task.graph.inputs}
    assert dtypes == {"bfloat16"}
    assert any("Only bfloat16 is proven" in note for note in task.notes)


async def test_a_literal_beyond_all_memory_does_not_end_the_opening(opened, written):
    path = written("""
        import torch

        def shifted(x):
            return x + torch.zeros(1 << 40).sum()

        def inputs():
            return [torch.randn(6, 45)]
    """)
    task = await opened(path)
    assert [node.op for node in task.graph.nodes][:2] == ["aten.zeros.default", "aten.sum.default"]


async def test_inputs_given_by_name_are_in_the_order_of_the_call(opened, written):
    path = written("""
        import torch

        def scaled(x, y, *, b, a):
            return x * y + a * b

        def inputs():
            return {"a": torch.randn(3), "y": torch.randn(3), "b": 2.0, "x": torch.randn(5, 3)}
    """)
    task = await opened(path)
    assert task.keywords == ("b", "a")
    assert [i.target for i in task.graph.inputs] == ["x", "y", "a"]
    assert [spec.shape for spec in task.inputs[0].tensors] == [(5, 3), (3,), (3,)]
    assert task.fixed == {"b": 2.0}
