"""Jobs that the tests run in real children: good ones, and every way to end badly."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from mtmc_engine.core.errors import ReferenceFailed


def echo(arguments, report):
    return arguments


def facts(arguments, report):
    import torch

    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.is_initialized(),
        "pid": os.getpid(),
        "session": os.getsid(0),
        "path": sys.path,
        "modules": sorted(m for m in sys.modules if "." not in m),
    }


def surroundings(arguments, report):
    return {"environment": dict(os.environ), "path": sys.path}


def counts(arguments, report):
    for n in range(arguments["n"]):
        report({"done": n})
    return arguments["n"]


def large(arguments, report):
    return "x" * arguments["bytes"]


def unsayable(arguments, report):
    return object()


def raises(arguments, report):
    print("about to raise")
    return {}["missing"]


def blames_the_reference(arguments, report):
    raise ReferenceFailed("softmax.py, line 3: it divides by zero.", line=3)


def sys_exits(arguments, report):
    sys.exit("enough")


def exits(arguments, report):
    print("last words", flush=True)
    os._exit(arguments["code"])


def aborts(arguments, report):
    print("before the abort")
    os.abort()


def segfaults(arguments, report):
    ctypes.string_at(8)


def hangs(arguments, report):
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    report("hanging")
    while True:
        time.sleep(60)


def sleeps(arguments, report):
    time.sleep(arguments["seconds"])
    return os.getpid()


def hoards(arguments, report):
    kept = []
    while True:
        kept.append(b"\1" * (8 << 20))
        time.sleep(0.002)


def children_hoard(arguments, report):
    code = "import time; kept = b'\\1' * (150 << 20); time.sleep(60)"
    for _ in range(4):
        subprocess.Popen([sys.executable, "-S", "-c", code])
    time.sleep(60)


def prints(arguments, report):
    piece = "y" * 1023 + "\n"
    for _ in range(arguments["megabytes"]):
        sys.stdout.write(piece * 1024)
    print("the end")


def leaves_children(arguments, report):
    """A grandchild in a session of its own, whose parent is gone, that ignores all it can."""
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "time.sleep(600)"
    )
    subprocess.Popen([sys.executable, "-S", "-c", code, arguments["note"]]).wait()
    while not Path(arguments["note"]).read_text():
        time.sleep(0.01)
    if arguments.get("then") == "hang":
        report("left")
        time.sleep(600)
    return "left"


def kills_its_parent(arguments, report):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


def kills_the_warm_parent(arguments, report):
    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)


def stops_its_parent(arguments, report):
    os.kill(os.getppid(), signal.SIGSTOP)
    return "stopped"


def forges(arguments, report):
    """Write an answer on every descriptor that takes it, as code that cheats might."""
    for fd in range(3, 64):
        try:
            os.write(fd, b'{"nonce":"guess","kind":"value","value":"forged"}\n')
        except OSError:
            continue
    return "honest"


def dials(arguments, report):
    with socket.create_connection(("127.0.0.1", arguments["port"]), timeout=5):
        return "connected"


def multiplies(arguments, report):
    import torch

    return float((torch.ones(256, 256) @ torch.ones(256, 256)).sum())


def adds_one(arguments, report):
    """Run a small Triton kernel on a CPU tensor, under the interpreter."""
    import torch

    from tests.system import kernels

    x = torch.arange(8, dtype=torch.float32)
    out = torch.empty_like(x)
    kernels.add_one[(1,)](x, out, 8, BLOCK=8)
    return out.tolist()


def compiles(arguments, report):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from tests.system import kernels

    source = ASTSource(
        kernels.add_one,
        signature={"x": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 1024},
    )
    return len(triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"])
