"""Child processes that never outlive the test: each is ended by its own process id."""
import atexit
import os
import random
import signal
import socket
import subprocess
import time

_started = []


def start(command, log_path, **options):
    """Starts a child whose output goes to `log_path` and which is killed when this program ends."""
    with open(log_path, "ab") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **options)
    _started.append(child)
    return child


def child(command, errors, stdin=subprocess.DEVNULL):
    """Starts a child whose output is read here, line by line; its errors go to an open file."""
    made = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=stdin,
                            start_new_session=True)
    _started.append(made)
    return made


def end(child, signal_number=signal.SIGTERM, seconds=20):
    """Ends a child and waits for it; SIGKILL when it does not obey. Returns its exit status."""
    if child.poll() is None:
        child.send_signal(signal_number)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child in _started:
        _started.remove(child)
    return child.returncode


@atexit.register
def _end_all():
    for child in list(reversed(_started)):
        end(child, signal.SIGKILL)


def _on_terminate(*_):
    _end_all()
    os._exit(143)


# A test that is told to end by its caller still ends what it started.
signal.signal(signal.SIGTERM, _on_terminate)


def free_port():
    """A port below the range of outgoing connections, so that it is still free at a restart."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port between 20000 and 32000")


def tail(path, size=3000):
    try:
        with open(path, "rb") as f:
            f.seek(0, 2)
            f.seek(max(0, f.tell() - size))
            return f.read().decode(errors="replace")
    except OSError as e:
        return str(e)


def wait_for(what, condition, seconds, step=0.1):
    """Waits until condition() is true and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(step)


def connects(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """What the process has used so far, user and system."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def memory_mib(pid, kind="VmRSS"):
    """Resident memory now; with VmHWM at its highest."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(kind)) / 1024
