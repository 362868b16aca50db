"""Finding and building the reference; runs in this process, on torch."""

import sys

import pytest

torch = pytest.importorskip("torch")

from mtmc_engine.capture.load import load_reference, module_name, resized  # noqa: E402
from mtmc_engine.capture.source import integer_constants, read_source  # noqa: E402
from mtmc_engine.core.graph import TensorSpec  # noqa: E402


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        if name.startswith("user_"):
            del sys.modules[name]


TEXT = """
import torch
from torch import nn

WIDTH = 1 << 10
HIDDEN = 4 * WIDTH
ROWS, SCALE = 64, 0.5
ROWS_TWICE: int = 2 * 16

class Model(nn.Module):
    def __init__(self, width, hidden=HIDDEN):
        super().__init__()
        self.linear = nn.Linear(width, hidden)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    import random, numpy as np
    return [torch.rand(ROWS, WIDTH), torch.from_numpy(np.random.rand(3)), random.random()]

def get_init_inputs():
    return [WIDTH]
"""


def test_constants_are_replaced_before_what_depends_on_them(written):
    path = written(TEXT, "user_constants.py")
    known = integer_constants(read_source(str(path)).tree)
    assert known == {"WIDTH": 1024, "ROWS": 64, "ROWS_TWICE": 32}
    reference = load_reference(str(path), constants={"WIDTH": 16, "ROWS": 2})
    assert reference.module.HIDDEN == 64
    assert reference.module.SCALE == 0.5
    assert reference.build(0).linear.weight.shape == (64, 16)
    assert reference.inputs(0)[0].shape == (2, 16)


def test_constructor_integers_are_replaced_by_position(written):
    reference = load_reference(str(written(TEXT, "user_positions.py")))
    assert reference.init_args() == [1024, 4096]
    assert reference.build(0, {0: 8, 1: 24}).linear.weight.shape == (24, 8)


def test_the_same_seed_gives_the_same_weights_and_inputs(written):
    reference = load_reference(str(written(TEXT, "user_seeds.py")))
    one, two = reference.build(3, {0: 8, 1: 8}), reference.build(3, {0: 8, 1: 8})
    assert torch.equal(one.linear.weight, two.linear.weight)
    (x, y, z), again = reference.inputs(3), reference.inputs(3)
    assert torch.equal(x, again[0])
    assert torch.equal(y, again[1])
    assert z == again[2]
    assert not torch.equal(x, reference.inputs(4)[0])


def test_programs_can_import_the_reference(written):
    reference = load_reference(str(written(TEXT, "user_imported.py")))
    namespace = {}
    exec("from user_imported import Model", namespace)
    assert namespace["Model"] is reference.target


def test_siblings_can_be_imported_and_do_not_hide_the_standard_library(written):
    written("def twice(x): return 2 * x\n", "user_sibling.py")
    written("raise RuntimeError('the wrong json')\n", "json.py")
    path = written(
        """
        import json
        import torch
        from user_sibling import twice

        def scaled(x):
            from user_sibling import twice as again
            return again(twice(x))

        def inputs(): return [torch.ones(2)]
        """,
        "user_main.py",
    )
    reference = load_reference(str(path))
    assert reference.build(0)(torch.ones(1)).item() == 4


def test_the_function_is_the_one_that_nothing_else_calls(written):
    path = written(
        """
        import torch
        def helper(x): return x + 1
        def _private(x): return x
        def chosen(x): return helper(x)
        def inputs(): return [torch.ones(2)]
        """,
        "user_functions.py",
    )
    assert load_reference(str(path)).entry == "chosen"
    assert load_reference(str(path), "helper").entry == "helper"


def test_module_names(tmp_path):
    assert module_name(tmp_path / "my_op.py") == "my_op"
    assert module_name(tmp_path / "my-op.py") == "my_op"
    assert module_name(tmp_path / "3d.py") == "reference_3d"
    assert module_name(tmp_path / "json.py") == "reference_json"
    assert module_name(tmp_path / "torch.py") == "reference_torch"


def _spec(*shape, dtype="float32"):
    return TensorSpec(shape, dtype)


def test_resized_inputs_keep_dtype_and_range():
    probabilities = torch.rand(64, 100) * 0.5 + 0.25
    mask = torch.rand(64) > 0.5
    small = resized([probabilities, "mean", mask], [_spec(3, 7), _spec(3)], seed=1)
    assert small[0].shape == (3, 7)
    assert small[0].min() >= 0.25
    assert small[0].max() <= 0.75
    assert small[1] == "mean"
    assert small[2].dtype == torch.bool
    again = resized([probabilities, "mean", mask], [_spec(3, 7), _spec(3)], seed=1)
    assert torch.equal(small[0], again[0])


def test_resized_inputs_of_the_same_shape_are_kept():
    x = torch.randn(4, 5)
    assert resized([x], [_spec(4, 5)], seed=0)[0] is x


def test_indices_stay_inside_a_dimension_that_shrinks():
    logits, targets = torch.randn(512, 100), torch.randint(0, 100, (512,))
    targets[0] = 99
    _, small = resized([logits, targets], [_spec(16, 12), _spec(16)], seed=0)
    assert small.max() < 12
    _, large = resized([logits, targets], [_spec(600, 100), _spec(600)], seed=0)
    assert large.max() > 12


def test_files_that_name_cuda_are_loaded_on_the_cpu(written):
    path = written(
        """
        import torch
        from torch import nn
        DEVICE = torch.device("cuda")

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4, device="cuda:0")
                self.other = nn.Linear(4, 4).cuda()

            def forward(self, x):
                return self.other(self.linear(x))

        def get_inputs():
            moved = [torch.ones(3).to("cuda"), torch.ones(3).cuda()]
            return [torch.ones(2, 4, device=DEVICE), moved]
        """,
        "user_cuda.py",
    )
    reference = load_reference(str(path))
    x, (y, z) = reference.inputs(0)
    assert {x.device.type, y.device.type, z.device.type} == {"cpu"}
    assert reference.build(0)(x).shape == (2, 4)
