"""What a process that runs foreign code can reach: a part of this machine, most of it read-only.

Namespaces (namespaces(7)) that need no helper program: they can be entered by a process that was
forked from a warm parent. Where the kernel refuses one the rest still holds; `protections_here`
finds out which do.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from mtmc_engine.system import kernel
from mtmc_engine.system.secrets import secret_places

PROCESSES = "processes"
"""It sees and signals its own processes only, and all of them end with it."""
DISK = "disk"
"""It can write to its own folder and to what it was given, nowhere else."""
SECRETS = "secrets"
"""Keys, tokens, journals and sockets of the user are out of its sight."""
NETWORK = "network"
"""It has no network, not even to this machine."""
ALL = frozenset({PROCESSES, DISK, SECRETS, NETWORK})

_NOTHING = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_READ_ONLY = _NOTHING | kernel.MS_RDONLY
_SHARED_MEMORY = "/dev/shm"
_SYSTEM_SWITCHES = tuple(f"/proc/{name}" for name in ("sys", "sysrq-trigger", "irq", "bus", "fs"))


class Confinement(Struct, frozen=True):
    """How a job that runs foreign code is shut in.

    writable: files and folders that it may change beside its private folder; they exist.
    hidden: files and folders that it must not see, but for what of them it may change: of a
        hidden folder with a folder for each job every job sees its own. The private folders of
        other jobs always are.
    """

    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


def enter(*flags: int) -> bool:
    """Move into new namespaces, as root or in a user namespace of one's own; False if refused."""
    for how in (kernel.unshare, kernel.unshare_as_root_within):
        with suppress(OSError):
            how(sum(flags))
            return True
    return False


def leave_network() -> bool:
    """Move this single-threaded process where there is no network; False if not permitted.

    Root moves without a user namespace, so that it keeps its rights on files of others.
    """
    return enter(kernel.CLONE_NEWNET)


def leave_processes() -> bool:
    """The next child, and all of its own, will see no process but themselves."""
    return enter(kernel.CLONE_NEWPID)


def shut_in(
    confinement: Confinement, private: Path, needed: Iterable[str], wanted: frozenset[str]
) -> frozenset[str]:
    """Shut this process in for good; the protections of `wanted` that hold now.

    Called in the first child after `leave_processes`. needed: paths that stay visible whatever
    they look like. Raises OSError where what the job may write cannot be opened or what it must
    not see cannot be covered; `protections_here` leaves out what would fail so everywhere.
    """
    held = wanted & {PROCESSES}
    if NETWORK in wanted and leave_network():
        held |= {NETWORK}
    enter(kernel.CLONE_NEWIPC)
    if wanted & {DISK, SECRETS, PROCESSES} and enter(kernel.CLONE_NEWNS):
        kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        if DISK in wanted:
            _close_disk(private, confinement.writable)
            held |= {DISK}
        if SECRETS in wanted:
            own = (str(private), *confinement.writable)
            for place in secret_places({*own, *needed}):
                with suppress(OSError):  # gone meanwhile, or below what was covered before
                    _cover(place)
            for place in filter(os.path.lexists, confinement.hidden):
                _cover(place, own)
            held |= {SECRETS}
        if PROCESSES in wanted:
            _own_proc()
    return held


def _close_disk(private: Path, writable: Iterable[str]) -> None:
    places = [str(private), *writable]
    shared = any(place.startswith(f"{_SHARED_MEMORY}/") for place in places)
    kernel.make_all_read_only()
    if os.path.isdir(_SHARED_MEMORY) and not shared:
        kernel.mount("tmpfs", _SHARED_MEMORY, "tmpfs", _NOTHING, "size=1g,mode=1777")
    for place in places:
        kernel.make_writable(place)


def _cover(place: str, kept: Iterable[str] = ()) -> None:
    """Put an empty file over a place, or a folder that is empty but for folders of `kept` in it."""
    if not os.path.isdir(place):
        kernel.bind(os.devnull, place)
        return
    inside = {one: os.open(one, os.O_PATH) for one in kept if one.startswith(f"{place}/")}
    kernel.mount("tmpfs", place, "tmpfs", _NOTHING, "size=64k,mode=555")
    for one, itself in inside.items():
        os.makedirs(one)
        kernel.bind(f"/proc/self/fd/{itself}", one)
        os.close(itself)
    kernel.mount("", place, "", kernel.MS_REMOUNT | kernel.MS_BIND | _READ_ONLY)


def _own_proc() -> None:
    """A /proc of this process namespace. A container may forbid it: the old one then stays, and
    shows processes that cannot be signalled.

    It can be written to, since CUDA names its threads there and fails to start where it cannot;
    the switches of the whole system stay read-only.
    """
    with suppress(OSError):
        kernel.mount("proc", "/proc", "proc", _NOTHING)
        for place in filter(os.path.exists, _SYSTEM_SWITCHES):
            kernel.bind(place, place)
            kernel.mount("", place, "", kernel.MS_REMOUNT | kernel.MS_BIND | _READ_ONLY)


def protections_here(folder: Path) -> frozenset[str]:
    """Which protections work on this machine, each tried in a child that is then thrown away.

    folder: where a file may be made. A protection counts if what it forbids fails there and what
    it leaves open works.
    """
    held = ALL
    with tempfile.TemporaryDirectory(prefix="probe-", dir=folder) as outside:
        private = Path(outside) / "private"
        private.mkdir()
        for _ in ALL:  # a child that cannot shut itself in says nothing: try with less
            found = _in_child(lambda held=held: _tried(Path(outside), private, held))  # type: ignore[misc]
            if found is not None:
                return found
            held -= {DISK} if DISK in held else {SECRETS} if SECRETS in held else {PROCESSES}
    return frozenset()


def _tried(outside: Path, private: Path, wanted: frozenset[str]) -> frozenset[str]:
    if PROCESSES in wanted and not leave_processes():
        wanted -= {PROCESSES}
    hidden = outside / "hidden"
    hidden.write_text("secret")
    confinement = Confinement(hidden=(str(hidden),))
    found = _in_child(lambda: _holding(shut_in(confinement, private, (), wanted), outside))
    if found is None:
        raise OSError("it cannot be shut in")
    return found


def _holding(claimed: frozenset[str], outside: Path) -> frozenset[str]:
    """Those of `claimed` that show themselves to this process."""
    (outside / "private" / "file").write_text("may be written")
    works = {
        PROCESSES: lambda: os.getpid() == 1,
        DISK: lambda: not _can_write(outside / "file"),
        SECRETS: lambda: (outside / "hidden").read_bytes() == b"",
        NETWORK: lambda: not _has_loopback(),
    }
    return frozenset(name for name in claimed if works[name]())


def _can_write(path: Path) -> bool:
    try:
        path.touch()
    except OSError:
        return False
    return True


def _has_loopback() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("127.0.0.1", 9))
        except OSError:
            return False
    return True


def _in_child(work: Callable[[], frozenset[str]]) -> frozenset[str] | None:
    """What `work` returns in a forked child; None where it raises."""
    answer_r, answer_w = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.write(answer_w, json.dumps(sorted(work())).encode())
        os._exit(0)
    os.close(answer_w)
    with open(answer_r, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return frozenset(json.loads(text)) if text else None
