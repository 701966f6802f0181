"""Linux namespaces for the processes inside the sandbox, by system call: what bubblewrap can't do for each probe.

A session of one tree gets its own process namespace, so that everything in it dies with its first process, and its
own user namespace, which makes mounting possible without being root. Each probe finds an empty ``/tmp`` and ``/dev/shm``
of limited size, the tree read-only, and no capabilities.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC_LOCKED = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock, which a forked child then has

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
_CLONE_NEWNET, _CLONE_PARENT = 0x40000000, 0x00008000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 36, 38
_MNT_DETACH = 2
_CAPABILITY_VERSION_3 = 0x20080522
# The architecture's number for filters; memfd_create, memfd_secret, shmget.
_HIDDEN_MEMORY_CALLS = {"x86_64": (0xC000003E, (319, 447, 29)), "aarch64": (0xC00000B7, (279, 447, 194))}
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}
_KEYCTL_NUMBER = {"x86_64": 250, "aarch64": 219}
_KEYCTL_JOIN_SESSION_KEYRING = 1


def fork() -> int:
    """Fork a process that has one thread, without what ``os.fork`` runs before and after for those that have more.

    Its handlers (of logging, threading, random, …) renew locks that nobody holds and touch so many pages, each of which
    is then copied, that they take two thirds of a fork's time: 3 ms, against 0.2 for the first step of a child.
    Returns 0 in the child, as ``os.fork`` does.

    Raises:
        OSError: there can be no more processes.
    """
    if sys.platform != "linux":
        return os.fork()
    pid = int(_LIBC_LOCKED.fork())
    if pid < 0:
        _call(pid, "fork")
    return pid


def fork_sibling() -> int:
    """Fork a process whose parent is this one's parent, who learns how it ends; this process must have one thread.

    Returns 0 in the child. On other systems than Linux the child is an ordinary one.

    Raises:
        OSError: there can be no more processes.
    """
    number = _CLONE_NUMBER.get(os.uname().machine)
    if sys.platform != "linux" or number is None:
        return os.fork()
    none = ctypes.c_long(0)
    pid = int(_LIBC_LOCKED.syscall(ctypes.c_long(number), ctypes.c_long(_CLONE_PARENT | signal.SIGCHLD), none, none, none, none))
    if pid < 0:
        _call(pid, "fork")
    return pid


def _call(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _prctl(*arguments: int) -> None:
    if sys.platform == "linux":
        _LIBC.prctl(*arguments)


def set_dumpable(yes: bool) -> None:
    """Say whether other processes of the same user may look into this one's memory."""
    _prctl(_PR_SET_DUMPABLE, int(yes), 0, 0, 0)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def go_first() -> None:
    """Get processor time before all others, as root, whose number of processes the kernel doesn't limit.

    Else a fork bomb's hundreds of processes leave so little to who must kill them that they only grow in number.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def take_turns() -> None:
    """Get no more processor time than others, whatever the parent gets."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)


def enter_session() -> None:
    """Move into new user, mount, IPC and network namespaces; the next fork begins a new process namespace.

    A closed connection stays in the kernel's table for a minute, and its addresses can carry text: so not even the
    network of the sandbox, which leads nowhere, is shared by two trees.

    Raises:
        OSError: this kernel or container doesn't allow it.
    """
    uid, gid = os.getuid(), os.getgid()
    set_dumpable(True)  # else /proc/self/uid_map belongs to root
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWNET
    _call(_LIBC.unshare(flags), "new namespaces")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"1000 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"1000 {gid} 1")
    set_dumpable(False)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE, None)
    forget_keys()


def forget_keys() -> None:
    """Take an empty session keyring: the kernel's keys would outlive a tree and carry text to the next one."""
    number = _KEYCTL_NUMBER.get(os.uname().machine)
    if number is not None:
        _LIBC.syscall(ctypes.c_long(number), ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING), None)


def freeze_proc() -> None:
    """Let nobody in this mount namespace write anything below ``/proc``, the kernel's records of memory in use for example."""
    _mount("/proc", "/proc", None, _MS_BIND | _MS_REC, None)
    _mount(None, "/proc", None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)


def resize_tmpfs(path: str, size_mib: int, num_files: int) -> None:
    """Change how much an empty tmpfs may hold from now on."""
    _mount(None, path, None, _MS_REMOUNT | _MS_NOSUID | _MS_NODEV, f"size={size_mib}m,nr_inodes={num_files}")


def mount_tmpfs(path: str, size_mib: int, num_files: int) -> None:
    """Lay an empty tmpfs of limited size and number of files over a folder."""
    options = f"size={size_mib}m,nr_inodes={num_files},mode=0777"
    _mount("tmpfs", path, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def make_read_only(path: str) -> None:
    """Let nobody in this mount namespace write below a mount any more."""
    _mount(None, path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV, None)


def renew_tmpfs(path: str, size_mib: int, num_files: int) -> None:
    """Put an empty tmpfs in the place of one that holds something."""
    if os.listdir(path):
        _call(_LIBC.umount2(path.encode(), _MNT_DETACH), f"unmount of {path}")
        mount_tmpfs(path, size_mib, num_files)


def drop_capabilities() -> None:
    """Give up every capability for good."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)()
    _call(_LIBC.capset(header, data), "dropping capabilities")


def forbid_hidden_memory() -> None:
    """Refuse, for good, the calls that make memory which belongs to no process and which no watch sees.

    Those are ``memfd_create`` and System V shared memory. A filter of the kernel's (seccomp) answers them with "not permitted",
    and every call of another architecture's, by whose numbers it could be evaded. Needs ``drop_capabilities`` before.
    """
    numbers = _HIDDEN_MEMORY_CALLS.get(os.uname().machine)
    if numbers is None:
        return
    architecture, calls = numbers
    refuse_at = 4 + len(calls) + 1
    load, equals, at_least, give = 0x20, 0x15, 0x35, 0x06
    program = [(load, 0, 0, 4), (equals, 0, refuse_at - 2, architecture), (load, 0, 0, 0)]
    program += [(at_least, refuse_at - 4, 0, 0x40000000)]
    program += [(equals, refuse_at - 5 - place, 0, call) for place, call in enumerate(calls)]
    program += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050000 | errno.EPERM)]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    memory = ctypes.create_string_buffer(code)
    filter_ = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(memory)))
    _call(_LIBC.prctl(_PR_SET_SECCOMP, 2, filter_, 0, 0), "a filter of system calls")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None) -> None:
    as_bytes = [None if word is None else word.encode() for word in (source, target, kind, options)]
    result = _LIBC.mount(as_bytes[0], as_bytes[1], as_bytes[2], ctypes.c_ulong(flags), as_bytes[3])
    _call(result, f"mount on {target}")
