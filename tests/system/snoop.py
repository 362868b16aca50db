import os, socket, subprocess, pathlib, ctypes
def tryit(f):
    try: return repr(f())[:200]
    except BaseException as e: return f"{type(e).__name__}: {e}"[:200]
def go(a, report):
    out = {}
    out["pid"]=os.getpid(); out["ppid"]=os.getppid(); out["proc"]=sorted(x for x in os.listdir("/proc") if x.isdigit())
    out["home"]=tryit(lambda: os.listdir(os.path.expanduser("~")))
    out["ssh"]=tryit(lambda: os.listdir(os.path.expanduser("~/.ssh")))
    out["write_home"]=tryit(lambda: pathlib.Path.home().joinpath("x").write_text("x"))
    out["write_tmp"]=tryit(lambda: pathlib.Path("/tmp/x").write_text("x"))
    out["write_private"]=tryit(lambda: pathlib.Path("x").write_text("x"))
    out["write_results"]=tryit(lambda: pathlib.Path(a["results"]+"/x").write_text("x"))
    out["shm"]=tryit(lambda: pathlib.Path("/dev/shm/x").write_text("x"))
    out["hidden"]=tryit(lambda: pathlib.Path(a["hidden"]).read_text())
    out["dial"]=tryit(lambda: socket.create_connection(("127.0.0.1", a["port"]), timeout=2))
    out["environ"]=tryit(lambda: open(f"/proc/{a['engine']}/environ").read())
    out["kill"]=tryit(lambda: os.kill(a["engine"], 0))
    out["killinit"]=tryit(lambda: os.kill(1, 9))
    out["init_mem"]=tryit(lambda: open("/proc/1/mem","rb"))
    out["init_env"]=tryit(lambda: open("/proc/1/environ","rb").read())
    libc=ctypes.CDLL(None,use_errno=True)
    out["ptrace"]=(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())
    out["mount"]=(libc.mount(b"", b"/", b"", 32|4096, None), ctypes.get_errno())
    out["umount"]=(libc.umount2(b"/root/.config", 2), ctypes.get_errno())
    out["unshare"]=(libc.unshare(0x20000), ctypes.get_errno())
    out["mem"]=tryit(lambda: open("/dev/vda","rb").read(16))
    out["sysctl"]=tryit(lambda: open("/proc/sys/kernel/core_pattern","w"))
    out["fds"]=tryit(lambda: {f: os.readlink(f"/proc/self/fd/{f}") for f in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{f}")})
    out["caps"]=[l.strip() for l in open("/proc/self/status") if "Cap" in l or "NoNew" in l]
    out["null"]=tryit(lambda: open("/dev/null","w").write("x"))
    out["urandom"]=tryit(lambda: open("/dev/urandom","rb").read(2))
    out["run"]=tryit(lambda: subprocess.run(["ls","/"],capture_output=True).stdout)
    out["lo"]=tryit(lambda: os.listdir("/sys/class/net"))
    out["userns"]=(libc.unshare(0x10000000|0x20000), ctypes.get_errno())
    out["remount2"]=(libc.mount(b"", b"/", b"", 32|4096, None), ctypes.get_errno())
    out["write_home2"]=tryit(lambda: pathlib.Path.home().joinpath("x").write_text("x"))
    return out
