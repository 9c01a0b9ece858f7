# SPDX-License-Identifier: BSD-3-Clause
"""Starting MPI programs, and ending them."""
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Failure(Exception):
    """Something the user must know; no traceback."""


def quoted(command):
    return " ".join(shlex.quote(word) for word in command)


def session(leader):
    """The processes of the session that `leader` made: mpirun puts ranks into process groups of their own."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(name))
    return found


def end(process):
    """Ends what we started: mpirun is asked first, so that it can end its ranks on other hosts."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        pass
    deadline = time.monotonic() + 10
    while (left := session(process.pid)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.poll()
        time.sleep(0.01)


def run(command, timeout):
    """(stdout, stderr) of a command that must succeed in time. It is ended whatever happens to us."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # A signal must not come between the start and the `finally` that undoes it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            process = start(command, out, err, mask)
        except OSError as error:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            raise Failure(f"cannot start {command[0]}: {error.strerror}") from error
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end(process)
        out.seek(0)
        err.seek(0)
        said, complained = out.read(), err.read()
    if status == 0:
        return said, complained
    what = f"did not end within {timeout:g} s" if status is None else f"failed with status {status}"
    lines = (complained.strip() or said.strip()).splitlines()
    if len(lines) > 16:
        lines[8:-8] = ["..."]
    raise Failure("\n".join([f"this command {what}:", "  " + quoted(command), *lines]))


def start(command, out, err, mask):
    """In a session of its own, with Open MPI allowed to run as root."""
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment,
                            start_new_session=True,
                            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))


def obey_signals():
    """The first one ends us, and what we started; none disturbs that."""
    seen = []

    def interrupt(number, _frame):
        seen.append(number)
        if len(seen) == 1:
            raise KeyboardInterrupt
    for number in ENDING:
        signal.signal(number, interrupt)


def warn_if_busy():
    load = os.getloadavg()[0]
    if load > os.cpu_count() / 2:
        print(f"this machine is busy (load {load:.1f}, {os.cpu_count()} processors): expect noise", file=sys.stderr)


def main(body):
    """Runs a program's body: its return value, or what went wrong, becomes the exit status."""
    obey_signals()
    try:
        return body()
    except (Failure, OSError) as failure:
        print(failure, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
