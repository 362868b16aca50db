"""System calls that Python does not wrap: namespaces, mounts, rights, memory.

Each raises OSError where the kernel refuses. Manual pages of the same names, section 2.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from contextlib import suppress

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p,) * 3 + (ctypes.c_ulong, ctypes.c_char_p)
_libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
_KEPT_FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC  # statvfs has the same numbers

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_OVERRIDE = 1
_LAST_CAPABILITY = 63

_SYS_MOUNT_SETATTR = 442  # the same on every architecture
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_MADV_COLLAPSE = 25


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unshare(flags: int) -> None:
    """Move this single-threaded process into new namespaces of the kinds in `flags`."""
    _checked(_libc.unshare(flags))


def unshare_as_root_within(flags: int) -> None:
    """The same in a new user namespace, in which this user has all rights and the same number."""
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | flags)
    with suppress(OSError):  # the identity is only looks: without the map files stay ours
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount something; see mount(2)."""
    names = (os.fsencode(name) for name in (source, target, kind))
    _checked(_libc.mount(*names, flags, options.encode() or None))


def bind(source: str, target: str) -> None:
    """Make `source` appear at `target`, which must be there and of the same sort."""
    mount(source, target, "", MS_BIND)


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns"))


def _mount_setattr(path: str, flags: int, attributes: _MountAttributes) -> None:
    size = ctypes.sizeof(attributes)
    number, at = ctypes.c_long(_SYS_MOUNT_SETATTR), ctypes.c_int(_AT_FDCWD)
    name, where = ctypes.c_char_p(os.fsencode(path)), ctypes.byref(attributes)
    _checked(_libc.syscall(number, at, name, ctypes.c_uint(flags), where, ctypes.c_size_t(size)))


def make_all_read_only() -> None:
    """Every mount of this mount namespace becomes read-only, the root first.

    Device nodes stay usable: only files and directories are meant. Kernels before 5.12 are told
    mount by mount.
    """
    try:
        _mount_setattr("/", _AT_RECURSIVE, _MountAttributes(set=_MOUNT_ATTR_RDONLY))
    except OSError:
        for point in mount_points():
            _remount(point, MS_RDONLY)


def make_writable(folder: str) -> None:
    """Give a folder or file a mount of its own that can be written to."""
    bind(folder, folder)
    try:
        _mount_setattr(folder, 0, _MountAttributes(clear=_MOUNT_ATTR_RDONLY))
    except OSError:
        _remount(folder, 0)


def _remount(point: str, flags: int) -> None:
    kept = os.statvfs(point).f_flag & _KEPT_FLAGS
    mount("", point, "", MS_REMOUNT | MS_BIND | kept | flags)


def mount_points() -> list[str]:
    """Where things are mounted, in the order in which they were."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [line.split(" ")[4] for line in file]
    escaped = (os.fsencode(point).decode("unicode_escape") for point in points)
    return [os.fsdecode(point.encode("latin-1")) for point in escaped]


def give_up_rights(keep_file_rights: bool) -> None:
    """Drop all capabilities for good.

    keep_file_rights: except the one to pass over file permissions, which root is used to.
    """
    kept = 1 << _CAP_DAC_OVERRIDE if keep_file_rights else 0
    for capability in range(_LAST_CAPABILITY + 1):
        if not kept >> capability & 1:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(data)))


def hide_memory(hidden: bool) -> None:
    """Whether only processes with rights over this one may trace it; forks inherit it."""
    _libc.prctl(_PR_SET_DUMPABLE, 0 if hidden else 1, 0, 0, 0)


def refuse_privileges() -> None:
    """No program started from here gains rights, and no crash writes a core file."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def adopt_orphans() -> None:
    """Orphaned descendants of this process become its children, even after setsid."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(parent: int, number: signal.Signals) -> None:
    """This process gets signal `number` when its parent ends, which getppid calls `parent`."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def collapse_memory() -> None:
    """Put private memory on huge pages where the kernel can (6.1): a fork then copies a tenth.

    Ranges that cannot be collapsed stay as they are.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.split(maxsplit=5) for line in file]
    for fields in lines:
        if fields[1].startswith("rw") and fields[1].endswith("p"):
            first, last = (int(number, 16) for number in fields[0].split("-"))
            _libc.madvise(first, last - first, _MADV_COLLAPSE)
