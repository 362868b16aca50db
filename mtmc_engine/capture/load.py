"""Finds and builds the reference that the user's file holds."""

from __future__ import annotations

import ast
import importlib
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from mtmc_engine.capture.absent_gpu import stand_in
from mtmc_engine.capture.call import in_call_order
from mtmc_engine.capture.draw import resized
from mtmc_engine.capture.on_cpu import OnCpu
from mtmc_engine.capture.policy import read_policy
from mtmc_engine.capture.results import register_records
from mtmc_engine.capture.source import Source, module_name, read_source, with_constants
from mtmc_engine.capture.triton_source import HOOKS, triton_source
from mtmc_engine.core.errors import MtmcError, ReferenceFailed, UsageError
from mtmc_engine.core.task import Policy

__all__ = ["Reference", "blamed", "load_reference", "module_name", "resized", "user_line"]

# What Triton says where it finds no GPU.
_NO_DRIVER = "active drivers"
_NEEDED = ("torch", "triton", "tl")


@dataclass(frozen=True)
class Reference:
    """The operator of a user's file, ready to be built.

    module: the imported file, in sys.modules under the name that programs import it by.
    entry:  name of the class (form "module") or function (form "function").
    launcher: of a file with Triton kernels, what launches them; "" for other files.
    home:   where `entry` is defined, if that is another file.
    """

    source: Source
    module: ModuleType
    entry: str
    form: Literal["module", "function"]
    policy: Policy
    launcher: str = ""
    home: ModuleType | None = None

    @property
    def target(self) -> Any:
        """The class or function itself."""
        return getattr(self.home or self.module, self.entry)

    @property
    def home_file(self) -> str:
        """The other file that defines `entry`; "" where it is the user's own."""
        return str(self.home.__file__) if self.home else ""

    def reloaded(self, constants: dict[str, int]) -> Reference:
        """The same reference with other module-level integers. Raises UsageError."""
        name = f"{self.home_file}:{self.entry}" if self.home else self.entry
        again = load_reference(str(self.source.path), name, constants)
        return replace(again, policy=self.policy)

    def init_args(self) -> list[Any]:
        """Constructor arguments by position, defaults filled in. Raises UsageError."""
        has_hook = hasattr(self._holder("get_init_inputs"), "get_init_inputs")
        given = []
        if has_hook:
            given = self._listed("get_init_inputs", self._made("get_init_inputs"))
        parameters = list(inspect.signature(self.target).parameters.values())
        for parameter in parameters[len(given) :]:
            positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            if not positional or parameter.default is parameter.empty:
                break
            given.append(parameter.default)
        return given

    def build(
        self,
        seed: int,
        init_args: dict[int, int] | None = None,
        device: str = "cpu",
    ) -> Callable[..., Any]:
        """The operator: a module in the policy's mode on `device`, or the function.

        init_args: constructor arguments to replace, by position (the shrunk twin's).
        Raises ReferenceFailed with the line where the constructor fails.
        """
        if self.form == "function":
            function: Callable[..., Any] = self.target
            return function
        _seed(seed)
        arguments = self.init_args()
        for position, value in (init_args or {}).items():
            arguments[position] = value
        with blamed(self.source, f"building {self.entry}", ReferenceFailed), OnCpu():
            model = self.target(*arguments)
        _forget_history(model)
        if self.policy.mode != "as_constructed":
            model.train(self.policy.mode == "train")
        if self.policy.dtypes:
            _cast(model, getattr(torch, self.policy.dtypes[0]))
        return model.to(device) if device != "cpu" else model  # type: ignore[no-any-return]

    def inputs(self, seed: int, device: str = "cpu") -> list[Any]:
        """The call's arguments as the file makes them, moved to `device`. Raises UsageError."""
        return self.call_inputs(seed, device)[0]

    def call_inputs(self, seed: int, device: str = "cpu") -> tuple[list[Any], tuple[str, ...]]:
        """As `inputs`, with the names of the last arguments where these are passed by name.

        A file may give its arguments by name, as a dict.
        """
        _seed(seed)
        made = self._made(self._hook)
        keywords: tuple[str, ...] = ()
        if isinstance(made, dict) and all(isinstance(name, str) for name in made):
            made, keywords = in_call_order(self.target, made)
        arguments = self._listed(self._hook, made)
        dtype = getattr(torch, self.policy.dtypes[0]) if self.policy.dtypes else None
        placed = pytree.tree_map(lambda leaf: _placed(leaf, dtype, device), arguments)
        return list(placed), keywords

    @property
    def _hook(self) -> str:
        """What makes the call's arguments: functions with kernels may have either."""
        usual, other = ("get_inputs", "inputs")[:: 1 if self.form == "module" else -1]
        has_usual = hasattr(self._holder(usual), usual)
        return usual if has_usual or not self.launcher else other

    def _holder(self, function: str) -> ModuleType:
        """The user's file, or that of the reference where only that one has `function`."""
        beside = self.home is not None and not hasattr(self.module, function)
        return self.home if beside and self.home is not None else self.module

    def _made(self, function: str) -> Any:
        with blamed(self.source, f"{function}()", UsageError), OnCpu():
            return getattr(self._holder(function), function)()

    def _listed(self, function: str, value: Any) -> list[Any]:
        if isinstance(value, torch.Tensor):
            return [value]
        if isinstance(value, list | tuple):
            return list(value)
        place = f"{self.source.path.name}:{self.source.definition(function)}"
        raise UsageError(
            f"{place}: {function}() must return a list of arguments, or a dict of them by name, "
            f"not {type(value).__name__}."
        )


def _cast(model: Any, dtype: Any) -> None:
    """Casts parameters and buffers; fake ones are replaced, since torch would swap them."""
    if not any(isinstance(p, FakeTensor) for p in (*model.parameters(), *model.buffers())):
        model.to(dtype)
        return
    cast: dict[int, tuple[Any, Any]] = {}  # shared ones stay shared
    for part in model.modules():
        for values in (part._parameters, part._buffers):
            for name, value in values.items():
                if value is None or not value.is_floating_point():
                    continue
                if id(value) not in cast:
                    made = value.detach().to(dtype)
                    is_parameter = isinstance(value, torch.nn.Parameter)
                    new = torch.nn.Parameter(made, value.requires_grad) if is_parameter else made
                    cast[id(value)] = (value, new)
                values[name] = cast[id(value)][1]


def _forget_history(model: Any) -> None:
    """Tensors that a constructor computes from parameters (weight_norm) can then be copied."""
    for part in model.modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                vars(part)[name] = value.detach()


def _seed(seed: int) -> None:
    """Every generator that a user's file may draw from."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def _placed(leaf: Any, dtype: Any, device: str) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf.to(device, dtype if leaf.is_floating_point() else None)


def load_reference(
    file: str,
    entry: str | None = None,
    constants: dict[str, int] | None = None,
    overrides: dict[str, Any] | None = None,
) -> Reference:
    """Imports the user's file and finds its reference.

    entry:     name of the class or function; by default `Model` where there is a get_inputs(),
               else the one public function that no other function of the file calls. Beside
               Triton kernels: what TASK or a convention names. "FILE:NAME" is one of another
               file, whose path counts from the user's file where it is not absolute.
    constants: module-level integers to replace before anything that depends on them runs.
    overrides: policy keys that win over the file's TASK.
    Raises UsageError where the file cannot be read, imported or understood. Meant for a
    disposable process: the file's folder stays on sys.path, so that siblings can be imported.
    """
    source = read_source(file)
    module = _import(source, constants or {})
    policy = read_policy(getattr(module, "TASK", {}), overrides or {}, source.path.name)
    entry = entry or policy.reference or None
    kernels = triton_source(source.tree, source.path.name)
    if kernels is None or entry in kernels.launching:
        if entry and ":" in entry:
            raise UsageError(
                f"{source.path.name} launches no Triton kernel of its own, so that it needs no "
                f"reference from elsewhere: open {entry.partition(':')[0]} itself."
            )
        name, form = _find(source, module, entry)
        return Reference(source, module, name, form, policy)
    launcher = kernels.launcher(policy.launcher)
    home, home_source = module, source
    if entry and (":" in entry or entry.endswith(".py")):
        other, _, entry = entry.partition(":")
        home_source = read_source(str(source.path.parent / other))
        home = _import(home_source, {})
    if not entry:
        entry = kernels.reference(launcher, _own(home))
    form = _form_beside_kernels(home_source, home, entry, (home, module))
    beside = home if home is not module else None
    return Reference(source, module, entry, form, policy, launcher, beside)


def _form_beside_kernels(
    source: Source, home: ModuleType, name: str, modules: tuple[ModuleType, ...]
) -> Literal["module", "function"]:
    """The form of a reference beside Triton kernels; either hook may make its arguments."""
    value = getattr(home, name, None)
    if value is None or not (_is_module_class(value) or inspect.isfunction(value)):
        return _form_of(source, home, name)
    if not any(hasattr(m, hook) for m in modules for hook in ("inputs", "get_inputs")):
        raise UsageError(
            f"{source.path.name} has no inputs() and no get_inputs(): "
            f"add one that returns the arguments of {name}."
        )
    return "module" if _is_module_class(value) else "function"


def _import(source: Source, constants: dict[str, int]) -> ModuleType:
    name = module_name(source.path)
    _make_siblings_importable(str(source.path.parent))
    module = ModuleType(name)
    module.__file__ = str(source.path)
    sys.modules[name] = module
    tree = with_constants(source.tree, constants) if constants else source.tree
    with blamed(source, "importing the file", UsageError), stand_in():
        exec(compile(tree, str(source.path), "exec", dont_inherit=True), module.__dict__)
    register_records(module)
    return module


def _make_siblings_importable(folder: str) -> None:
    """Siblings win over installed packages, never over the standard library."""
    if folder in sys.path:
        return
    at = next((i for i, p in enumerate(sys.path) if p.endswith("-packages")), len(sys.path))
    sys.path.insert(at, folder)
    importlib.invalidate_caches()


@contextmanager
def blamed(source: Source, doing: str, error: type[MtmcError]) -> Iterator[None]:
    """Turns an exception of the user's code into one sentence with its line in the user's file."""
    try:
        yield
    except MtmcError:
        raise
    except ModuleNotFoundError as cause:
        text = f"{_place(source, cause)} imports {cause.name}, which is not installed here; "
        raise UsageError(text + "install it, or remove the import.") from cause
    except (Exception, SystemExit, KeyboardInterrupt) as cause:
        if _NO_DRIVER in str(cause):
            raise UsageError(
                f"{_place(source, cause)} launches a Triton kernel, which needs a GPU; "
                "open it on a machine with one, or give the reference in PyTorch."
            ) from cause
        text = f"{_place(source, cause)}: {doing} failed: {described(cause)}"
        if error is ReferenceFailed:
            raise ReferenceFailed(text, user_line(source, cause)) from cause
        raise error(text) from cause


def _place(source: Source, error: BaseException) -> str:
    line = user_line(source, error)
    return f"{source.path.name}:{line}" if line else source.path.name


def user_line(source: Source, error: BaseException) -> int:
    """The innermost line of the user's file in the error's traceback, 0 where there is none."""
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(source.path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def described(error: BaseException) -> str:
    """The error's type and the first line of its message, at most 200 characters."""
    lines = str(error).strip().splitlines()
    message = lines[0].strip() if lines else ""
    if len(message) > 200:
        message = message[:199] + "…"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _find(
    source: Source, module: ModuleType, entry: str | None
) -> tuple[str, Literal["module", "function"]]:
    if entry is not None:
        return entry, _form_of(source, module, entry)
    if hasattr(module, "Model") or hasattr(module, "get_inputs"):
        if hasattr(module, "Model"):
            return "Model", _form_of(source, module, "Model")
        classes = [n for n, v in _own(module).items() if _is_module_class(v)]
        found = f"; did you mean --reference {classes[0]}?" if classes else "."
        raise UsageError(
            f"{source.path.name} has get_inputs() but no class Model(nn.Module){found}"
        )
    if not hasattr(module, "inputs"):
        raise UsageError(
            f"{source.path.name} holds no reference: looked for class Model with get_inputs(), "
            "and for a function with inputs()."
        )
    name = _only_function(source, module)
    return name, _form_of(source, module, name)


def _form_of(source: Source, module: ModuleType, name: str) -> Literal["module", "function"]:
    value = getattr(module, name, None)
    place = f"{source.path.name}:{source.definition(name)}"
    if name in _NEEDED and value is not None:
        raise UsageError(
            f"{place}: {name} is also the name of a module that every kernel imports; rename it."
        )
    if value is None:
        known = [n for n, v in _own(module).items() if callable(v) and n not in HOOKS]
        listed = f"it has {', '.join(known)}" if known else "it has no function or class"
        raise UsageError(f"{source.path.name} has no {name}; {listed}.")
    if _is_module_class(value):
        if not callable(getattr(module, "get_inputs", None)):
            raise UsageError(f"{place}: {name} needs a get_inputs() beside it; none was found.")
        return "module"
    if inspect.isclass(value) or not callable(value) or isinstance(value, torch.nn.Module):
        kind = "class" if inspect.isclass(value) else type(value).__name__
        raise UsageError(f"{place}: {name} is a {kind} but not a subclass of torch.nn.Module.")
    if not callable(getattr(module, "inputs", None)):
        raise UsageError(f"{place}: the function {name} needs an inputs() beside it.")
    return "function"


def _is_module_class(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, torch.nn.Module)


def _own(module: ModuleType) -> dict[str, Any]:
    """Public names that the file itself defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


def _only_function(source: Source, module: ModuleType) -> str:
    """The public function that no other function of the file calls."""
    functions = [n for n, v in _own(module).items() if inspect.isfunction(v) and n not in HOOKS]
    called = {
        used.id
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef)
        for used in ast.walk(node)
        if isinstance(used, ast.Name) and used.id != node.name
    }
    outer = [name for name in functions if name not in called]
    if len(outer) == 1:
        return outer[0]
    if not outer:
        raise UsageError(
            f"{source.path.name} has inputs() but no public function to go with it; "
            "looked for one that no other function of the file calls."
        )
    raise UsageError(
        f"{source.path.name} has several functions ({', '.join(outer)}); "
        f"choose one with --reference {outer[0]}."
    )
