"""What each process may import, checked in a real one."""

from __future__ import annotations

import subprocess
import sys

import pytest

NATIVE = ("torch", "triton", "numpy", "llama_cpp", "openai")
SCREEN = ("textual", "rich")


def loaded(module: str) -> set[str]:
    """Top-level modules in a fresh interpreter after importing `module`."""
    code = f"import sys, {module}; print('\\n'.join({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("module", ["mtmc_tui.cli", "mtmc_tui.client", "mtmc_tui.screen.app"])
def test_the_interface_loads_nothing_native(module: str) -> None:
    assert not loaded(module) & set(NATIVE)


@pytest.mark.parametrize("module", ["mtmc_tui.cli"])
def test_the_command_line_starts_without_the_screen(module: str) -> None:
    assert "textual" not in loaded(module)


def test_the_engine_loads_neither_screen_nor_native_libraries() -> None:
    assert not loaded("mtmc_engine.__main__") & {*NATIVE, *SCREEN}


def test_transports_load_no_library_of_a_model_in_the_engine() -> None:
    names = ("openai_chat", "llama_chat", "patience", "capabilities", "meter", "endpoints")
    modules = [f"mtmc_engine.system.chat.{name}" for name in names]
    assert not loaded(", ".join(modules)) & {*NATIVE, *SCREEN, "httpx2"}


@pytest.mark.parametrize("host", ["http_host", "llama_host"])
def test_a_chat_host_starts_before_its_library_is_loaded(host: str) -> None:
    assert not loaded(f"mtmc_engine.system.chat.{host}") & {*NATIVE, "httpx2"}


@pytest.mark.parametrize("room", ["core", "schedule", "plan", "planner", "coder", "export"])
def test_pure_rooms_load_no_native_library(room: str) -> None:
    code = f"""
import importlib, pkgutil, sys
import mtmc_engine.{room} as package
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if ".host" not in found.name:
        importlib.import_module(found.name)
print({{m.split(".")[0] for m in sys.modules}} & {set(NATIVE)!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
