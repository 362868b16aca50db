"""Building the reference and the candidate with the same weights."""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mtmc_engine.capture.load import Reference, load_reference
from mtmc_engine.proof.wire import Build, CandidateCode

# Where a module keeps what `to` moves.
_REGISTERED = ("_parameters", "_buffers", "_modules")


def open_reference(build: Build) -> Reference:
    """The user's file, with the build's constants. Raises UsageError as load_reference does.

    Under the policy "tf32" torch's switches are set for this process, whoever computes in it.
    """
    reference = load_reference(build.file, build.entry or None, build.constants or None)
    if build.policy.precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
    return reference


def build_reference(reference: Reference, build: Build, device: str | None = None) -> Any:
    """The operator on the build's device, or on `device`. Raises ReferenceFailed."""
    where = device or build.device
    with _initialisers(build):
        model = reference.build(build.seed, dict(build.init_args), where)
    if isinstance(model, torch.nn.Module):
        move_plain_tensors(model, torch.device(where))
    return model


def _initialisers(build: Build) -> AbstractContextManager[None]:
    return nullcontext() if build.randomise else varied_initialisers()


@contextmanager
def varied_initialisers() -> Iterator[None]:
    """Within it, modules that would start with constant parameters start with varied ones.

    For candidates whose weights cannot be loaded, such as those that pack them in their
    constructor: reference and candidate are both built in here, so that no scale of one and no
    bias of zero hides an error. What a constant becomes depends only on the constant and the
    shape, not on the order of construction, and takes nothing from torch's own generator.
    """
    constants = {name: getattr(torch.nn.init, name) for name in ("ones_", "zeros_", "constant_")}
    make = torch.nn.Parameter.__new__

    def filled(name: str) -> Callable[..., torch.Tensor]:
        def fill(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            return _varied(constants[name](tensor, *args, **kwargs))

        return fill

    def parameter(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
        made = make(cls, data, requires_grad)
        return _varied(made)

    for name in constants:
        setattr(torch.nn.init, name, filled(name))
    torch.nn.Parameter.__new__ = parameter
    try:
        yield
    finally:
        for name, function in constants.items():
            setattr(torch.nn.init, name, function)
        torch.nn.Parameter.__new__ = make


def _varied(value: torch.Tensor) -> torch.Tensor:
    """A constant floating-point tensor changed in place as `randomise` does; others stay."""
    if value.is_meta or not value.is_floating_point() or not value.numel():
        return value
    first = float(value.detach().flatten()[0])
    if not math.isfinite(first) or not bool((value.detach() == first).all()):
        return value
    key = zlib.crc32(repr((first, tuple(value.shape))).encode())
    with torch.no_grad():
        _move(value, first, torch.Generator().manual_seed(key))
    return value


def _move(value: torch.Tensor, first: float, generator: torch.Generator) -> None:
    if first == 0:
        value.copy_(torch.randn(value.shape, generator=generator) * 0.25)
    else:
        value.mul_((torch.rand(value.shape, generator=generator) + 0.5).to(value))


def randomise(model: Any, seed: int) -> None:
    """Moves every constant floating-point parameter and buffer away from its initial value.

    A scale of one and a bias of zero hide errors: ones become uniform in [0.5, 1.5), zeros normal
    with deviation 0.25, any other constant is multiplied by uniform [0.5, 1.5). Weights that vary
    already stay.
    """
    if not isinstance(model, torch.nn.Module):
        return
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in model.state_dict().values():
            if not value.is_floating_point() or not value.numel():
                continue
            first = float(value.flatten()[0])
            if bool((value == first).all()):
                _move(value, first, generator)


def source_of(code: CandidateCode) -> bytes:
    """The candidate's source as it lies on disk now."""
    return Path(code.path).read_bytes()


def token_of(source: bytes) -> str:
    """What tells one source from another, taken before it runs: its SHA-256, hexadecimal."""
    return hashlib.sha256(source).hexdigest()


def import_candidate(code: CandidateCode, source: bytes | None = None) -> ModuleType:
    """Runs the candidate's source under its own name; whatever it raises passes through.

    source: what is run, whatever lies on disk meanwhile; None for what lies there now.
    """
    if code.beside and code.beside not in sys.path:
        sys.path.insert(0, code.beside)
    text = source_of(code) if source is None else source
    spec = importlib.util.spec_from_file_location(code.module, Path(code.path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[code.module] = module
    lines = importlib.util.decode_source(text).splitlines(keepends=True)
    linecache.cache[code.path] = (len(text), None, lines, code.path)  # for inspect, as Triton uses
    exec(compile(text, code.path, "exec", dont_inherit=True), module.__dict__)
    return module


def find_entry(module: ModuleType, reference: Reference) -> Any:
    """`ModelNew`, or what stands under the launcher's or the reference's name; None without."""
    for name in ("ModelNew", reference.launcher):
        if name and getattr(module, name, None) is not None:
            return getattr(module, name)
    named = getattr(module, reference.entry, None)
    return None if named is reference.target else named


def build_candidate(
    entry: Any, reference: Reference, build: Build, model: Any, weights: str
) -> Any:
    """The candidate, ready to be called, with the weights of `model`.

    weights: as in Compiled. Whatever its constructor raises passes through.
    """
    if not isinstance(entry, type):
        return entry
    if weights == "from_reference":
        with _made_on(build.device):
            return entry.from_reference(model)  # type: ignore[attr-defined]
    arguments = reference.init_args() if reference.form == "module" else []
    for position, value in build.init_args:
        arguments[position] = value
    torch.manual_seed(build.seed)
    with _initialisers(build):
        made = entry(*arguments)
    if not isinstance(made, torch.nn.Module):
        return made
    if reference.policy.dtypes:
        made.to(getattr(torch, reference.policy.dtypes[0]))
    if isinstance(model, torch.nn.Module):
        device = next((v.device for v in model.state_dict().values()), torch.device(build.device))
        made.to(device)
        move_plain_tensors(made, device)
        if weights == "state_dict":
            made.load_state_dict(model.state_dict())
        if reference.policy.mode != "as_constructed":
            made.train(reference.policy.mode == "train")
    return made


def _made_on(device: str) -> AbstractContextManager[Any]:
    """Within it, tensors are made on `device` unless another one is asked for."""
    return nullcontext() if device == "cpu" else torch.device(device)


def move_plain_tensors(module: torch.nn.Module, device: torch.device) -> None:
    """Moves tensors that modules keep beside their parameters and buffers, which `to` leaves.

    A constructor that packs weights runs on the CPU, since the reference's does and both must draw
    the same numbers there. Lists, tuples and dictionaries of tensors are moved, too.
    """

    def there(value: Any) -> Any:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    for part in module.modules():
        for name, value in list(vars(part).items()):
            if name in _REGISTERED:
                continue
            tensors = (v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor))
            if any(tensor.device.type != device.type for tensor in tensors):
                with torch.no_grad():
                    vars(part)[name] = pytree.tree_map(there, value)


def how_weights_pass(entry: Any, made: Any, model: Any) -> str:
    """How this candidate can get the reference's weights: a value of Compiled.weights."""
    if not isinstance(entry, type):
        return "none"
    if hasattr(entry, "from_reference"):
        return "from_reference"
    if not isinstance(made, torch.nn.Module) or not isinstance(model, torch.nn.Module):
        return "none"
    ours, theirs = made.state_dict(), model.state_dict()
    same = ours.keys() == theirs.keys() and all(
        ours[name].shape == theirs[name].shape for name in ours
    )
    return "state_dict" if same else "seed"


def derived_tensors(made: Any) -> tuple[str, ...]:
    """Tensors that a module keeps beside its parameters and persistent buffers."""
    if not isinstance(made, torch.nn.Module):
        return ()
    found = []
    for path, module in made.named_modules():
        hidden = module._non_persistent_buffers_set
        names = [n for n, v in vars(module).items() if isinstance(v, torch.Tensor)]
        found += [f"{path}.{n}".lstrip(".") for n in [*names, *sorted(hidden)]]
    return tuple(found)
