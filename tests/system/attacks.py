"""What hostile code may try in its child; each returns what it achieved."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def _achieved(tries):
    """Names of those that raise nothing."""
    done = []
    for name, attempt in tries.items():
        try:
            attempt()
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        done.append(name)
    return done


def _checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "refused")


def _opened(path, flags):
    os.close(os.open(path, flags))


def writes(arguments, report):
    """Make, append to, remove and rename at each place; only in the given ones it may."""
    done = []
    for place in map(Path, arguments["places"]):
        tries = {
            f"make in {place}": (place / "made").touch,
            f"append in {place}": lambda place=place: (place / "kept").open("a").write("more"),
            f"remove in {place}": (place / "kept").unlink,
            f"rename {place}": lambda place=place: place.rename(f"{place}-moved"),
            f"permissions of {place}": lambda place=place: place.chmod(0o777),
        }
        done += _achieved(tries)
    Path("in the private folder").write_text("x")
    for folder in arguments["writable"]:
        Path(folder, "made").write_text("x")
    return done


def lists(arguments, report):
    """What it sees below a folder; it leaves a file in `own`."""
    Path(arguments["own"], "made").write_text("x")
    place = Path(arguments["place"])
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def lists_around_itself(arguments, report):
    """Names in the folder of all jobs, by its path and from this job's own folder upwards."""
    return [sorted(os.listdir(arguments["root"])), sorted(os.listdir(".."))]


def reads_scratch(arguments, report):
    """Files with contents that it finds in scratch folders of these names."""
    place = Path("/", arguments["temporary"])  # a path that it was given would stay visible
    files = [path for name in arguments["names"] for path in (place / name).rglob("*")]
    return [str(path.relative_to(place)) for path in files if path.is_file() and path.read_bytes()]


def opens_the_disk_again(arguments, report):
    """Undo the confinement by mounts, new namespaces and devices, then write."""
    place = Path(arguments["place"])
    bind, remount, detach = 4096, 32, 2
    tries = {
        "remount": lambda: _checked(_libc.mount(b"", b"/", b"", remount | bind, None)),
        "mount": lambda: _checked(_libc.mount(b"t", b"/mnt", b"tmpfs", 0, None)),
        "unmount": lambda: _checked(_libc.umount2(arguments["hidden"].encode(), detach)),
        "new mounts": lambda: _checked(_libc.unshare(0x20000)),
        "node": lambda: os.mknod("disk", 0o60600, os.makedev(254, 0)),
        "kernel settings": lambda: _opened("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        "chroot": lambda: os.chroot("/proc/1/root"),
    }
    done = _achieved(tries)
    if _libc.unshare(0x10000000 | 0x20000) == 0:  # root in a user namespace of its own
        done += [f"{name} as another root" for name in _achieved(tries) if name != "new mounts"]
        done += _achieved({"write as another root": (place / "made").touch})
        done = [name for name in done if not name.startswith(("mount as", "chroot as"))]
    done += _achieved({"write": (place / "made").touch, "read": lambda: _nonempty(arguments)})
    return done


def _nonempty(arguments):
    if not Path(arguments["hidden"]).read_text():
        raise OSError("empty")


def looks_around(arguments, report):
    """Which of the given names in the home folder it sees with their contents."""
    seen = []
    for name in arguments["names"]:
        path = Path.home() / name
        try:
            if any(path.iterdir()) if path.is_dir() else path.read_bytes():
                seen.append(name)
        except OSError:
            continue
    return seen


def attacks_processes(arguments, report):
    """Signal, trace and read the engine and whatever is above this process."""
    tries = {}
    for pid in [*arguments["pids"], os.getppid()]:
        tries |= {
            f"stop {pid}": lambda pid=pid: os.kill(pid, signal.SIGSTOP),
            f"kill {pid}": lambda pid=pid: os.kill(pid, signal.SIGKILL),
            f"trace {pid}": lambda pid=pid: _checked(_libc.ptrace(16, pid, 0, 0)),
            f"environment of {pid}": Path(f"/proc/{pid}/environ").read_bytes,
            f"memory of {pid}": lambda pid=pid: _opened(f"/proc/{pid}/mem", os.O_RDWR),
            f"files of {pid}": lambda pid=pid: os.readlink(f"/proc/{pid}/fd/0"),
            f"root of {pid}": lambda pid=pid: os.listdir(f"/proc/{pid}/root/"),
        }
    own = {f"{what} {os.getppid()}" for what in ("stop", "kill")}  # sent, and nothing happens
    time.sleep(0.05)
    others = sorted({int(n) for n in os.listdir("/proc") if n.isdigit()})
    return {"achieved": [n for n in _achieved(tries) if n not in own], "sees": others}


def dials_everywhere(arguments, report):
    """Reach a server of this machine by network or by name, and anything outside."""
    tries = {
        "loopback": lambda: socket.create_connection(("127.0.0.1", arguments["port"]), 2),
        "outside": lambda: socket.create_connection(("192.0.2.1", 80), 0.5),
        "agent": lambda: _unix("/" + arguments["agent"]),
        "abstract": lambda: _unix("\0" + arguments["abstract"]),
    }
    return _achieved(tries)


def _unix(address):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)


def forks(arguments, report):
    """A fork bomb of modest size: every fork forks on until there are enough."""
    for _ in range(arguments["rounds"]):
        try:
            os.fork()
        except OSError:
            break
    time.sleep(60)


def fills_the_disk(arguments, report):
    """Write until stopped: into many files, one, a nameless one, or memory that is a file."""
    piece = b"\1" * (1 << 20)
    if arguments["how"] == "many":
        for n in range(4000):
            Path(arguments["folder"], str(n)).write_bytes(piece)
            time.sleep(0.002)
    file = os.memfd_create("hoard") if arguments["how"] == "memory" else -1
    if file < 0:
        path = Path(arguments["folder"], "file")
        file = os.open(path, os.O_CREAT | os.O_WRONLY)
        if arguments["how"] == "nameless":
            path.unlink()
    for _ in range(4000):
        os.write(file, piece)
        os.lseek(file, 0, os.SEEK_END)
        time.sleep(0.002)


def prints_gigabytes(arguments, report):
    piece = b"y" * (1 << 20)
    for _ in range(arguments["megabytes"]):
        os.write(1, piece)
    print("the end")


def leaves_traps(arguments, report):
    """Things in the results that would hold up or mislead whoever reads them."""
    folder = Path(arguments["folder"])
    (folder / "link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / "closed").mkdir()
    (folder / "closed" / "inside").touch()
    (folder / "closed").chmod(0)
    (folder / "fine").write_text("result")
    Path("closed").mkdir()
    Path("closed", "inside").touch()
    Path("closed").chmod(0)


def leaves_a_daemon(arguments, report):
    code = (
        "import os, signal, sys, time\n"
        "for number in range(1, 32):\n"
        "    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "open(sys.argv[1], 'w').write('up')\n"
        "time.sleep(600)"
    )
    up = Path(arguments["folder"], "up")
    subprocess.Popen([sys.executable, "-S", "-c", code, str(up)]).wait()
    while not up.exists() or not up.read_text():
        time.sleep(0.01)
    return "left"


def numbers(arguments, report):
    report({"nan": float("nan")})
    return {"nan": float("nan"), "inf": [float("inf"), -float("inf")], "given": arguments["nan"]}
