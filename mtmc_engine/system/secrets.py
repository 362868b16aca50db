"""Places on this machine that a foreign program has no business to see."""

from __future__ import annotations

import os
import pwd
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from mtmc_engine.system.paths import config_folder, data_folder
from mtmc_engine.system.scratch import JOBS_PREFIX, PREFIX

# Of the home folder every entry whose name begins with a dot is hidden but these, in which
# programs and downloaded weights live.
_USEFUL = {".cache", ".local", ".conda", ".nix-profile", ".nix-defexpr"}
_IN_USEFUL = (
    ".local/state",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
)
_OF_THE_SYSTEM = (
    *("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/etc/sudoers.d"),
    *("/run/user", "/run/secrets", "/run/dbus", "/run/docker", "/run/containerd", "/run/podman"),
    *("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/mqueue"),
)
_MOST_ENTRIES = 2000


def secret_places(needed: Iterable[str]) -> list[str]:
    """Files and folders to hide: keys, configuration and history in the home folder, mtmc's own
    journals and scratch space, sockets of other programs, and disks as devices.

    needed: paths that must stay visible. A folder above one of them is left open, and what lies
    beside it there is hidden instead. Python and its packages always stay. The home folder, or
    one above it, is no reason to show what is hidden in there.
    """
    ours = [str(data_folder()), str(config_folder()), *_scratch()]
    places = [*_in_homes(), *ours, *_OF_THE_SYSTEM]
    kept = frozenset(
        path
        for path in _with_targets([*needed, *_of_python()])
        if not any(home == path or home.startswith(f"{path.rstrip('/')}/") for home in _homes())
    )
    found = [place for start in places for place in _around(start, kept)]
    return [*found, *_sockets(), *_disks()]


def _scratch() -> Iterator[str]:
    """Folders of every session and of every job on this machine."""
    for prefix in (PREFIX, JOBS_PREFIX):
        yield from map(str, Path(tempfile.gettempdir()).glob(f"{prefix}*"))


def _with_targets(paths: Iterable[str]) -> frozenset[str]:
    absolute = {os.path.abspath(path) for path in paths if path}
    return frozenset(absolute | {os.path.realpath(path) for path in absolute})


def _of_python() -> list[str]:
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    tools = (os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"))
    return [sys.prefix, sys.base_prefix, sys.executable, *sys.path, *folders, *tools]


def _homes() -> set[str]:
    homes = {os.path.expanduser("~")}
    with suppress(KeyError):  # a container's user may have no name
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return homes - {"/", ""}


def _in_homes() -> Iterator[str]:
    for home in _homes():
        for name in _names(home):
            if name.startswith(".") and name not in _USEFUL:
                yield f"{home}/{name}"
        yield from (f"{home}/{name}" for name in _IN_USEFUL)


def _around(place: str, kept: frozenset[str], depth: int = 6) -> Iterator[str]:
    """`place`, or where something below it is kept what lies around that."""
    if os.path.islink(place):
        place = os.path.realpath(place)
        if not os.path.isfile(place) and not any(place.startswith(f"{h}/") for h in _homes()):
            return  # a folder elsewhere is not the user's own
    if not os.path.lexists(place):
        return
    if any(place == path or place.startswith(f"{path}/") for path in kept):
        return
    if not any(path.startswith(f"{place}/") for path in kept):
        yield place
    elif depth:
        for name in _names(place):
            yield from _around(f"{place}/{name}", kept, depth - 1)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _sockets() -> Iterator[str]:
    """Sockets by which programs of this machine take orders: agents, displays, containers.

    An empty network does not cut them off, since they have their names on the disk. The GPU's
    own stay: CUDA asks the daemons behind them.
    """
    for folder in ("/run", "/tmp"):
        for entry in _entries(folder):
            if entry.name.startswith("nvidia"):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from (one.path for one in _entries(entry.path) if _is_socket(one))
            elif _is_socket(entry):
                yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
    except OSError:
        return []


def _is_socket(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    return False


def _disks() -> Iterator[str]:
    """Block devices: root could write to one below a file system that is read-only."""
    for name in _names("/sys/class/block"):
        path = Path("/dev") / name
        if path.is_block_device():
            yield str(path)
