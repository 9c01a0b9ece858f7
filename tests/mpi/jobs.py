# SPDX-License-Identifier: BSD-3-Clause
"""Starting MPI jobs with and without Sluice, for the tests of this folder.

A test is an executable whose functions named test_* are run in order by main(); each raises where something is
not so. Words on the command line pick those whose names contain one of them.
"""
import collections
import functools
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BUILD = os.environ["top_builddir"]
SOURCE = os.environ["top_srcdir"]
LIBRARY = os.environ["LIBSLUICE"]
MPIRUN = os.environ["MPIRUN"]
MPICC = os.environ["MPICC"]
MPIFORT = os.environ.get("MPIFORT", "")
OPEN_MPI = os.environ.get("MPI_FLAVOUR") == "openmpi"
HAS_TLS = os.path.exists(os.path.join(os.path.dirname(LIBRARY), "libsluice-tls.so"))
LONG = os.environ.get("CHECK_LONG") == "1"
SPEED = os.environ.get("CHECK_SPEED") == "1"
# With the programs of a second MPI, in `make check-ci` (second_mpi.py).
BRIEF = os.environ.get("CHECK_BRIEF") == "1"
# In `make check`, but not where CI calls it.
SAMPLED = not (LONG or BRIEF or os.environ.get("CHECK_WHOLE") == "1")
# Seconds for any one job, so that what hangs fails. No right one takes as long: not on a busy machine, and not where
# mpirun takes half a minute to start, as it may on a host whose own name does not resolve (build-aux/check-host-name).
LIMIT = 300

# SLUICE_CHOICE of jobs that do not say. Tests that do not look at who did a call set it to "guard".
CHOICE = "rules"

# What lets the other ranks live on when one is killed: options of mpirun, and what stands before the program. (MPICH's
# mpiexec ends them, unless a shell is in between.)
RECOVERY, BETWEEN = (["--enable-recovery"], []) if OPEN_MPI else ([], ["sh", "-c", '"$@"; sleep 2', "sh"])

# MPICH spins without yielding: more ranks than processors take forever.
RANKS = (1, 2, 3, 4, 5, 8) if OPEN_MPI else (1, 2, 3)


class Skipped(Exception):
    """The test can't be made here, and why."""


class Launcher:
    """What starts a job of one MPI."""

    def __init__(self, mpirun, is_open_mpi):
        self.mpirun, self.is_open_mpi = mpirun, is_open_mpi

    def words(self, ranks, options, preload):
        words = [self.mpirun, *options, "-n", str(ranks)]
        if self.is_open_mpi:
            words.append("--oversubscribe")
        if preload:
            words += ["-x", "LD_PRELOAD=" + preload] if self.is_open_mpi else ["-genv", "LD_PRELOAD", preload]
        return words


class Job:
    """What came of a job: its status (None if it had to be stopped), what it said, and how long it took."""

    def __init__(self, command, status, said, seconds):
        self.command, self.status, self.said, self.seconds = command, status, said, seconds

    def __str__(self):
        what = "did not end" if self.status is None else f"ended with status {self.status}"
        return f"{' '.join(self.command)}\n{what} after {self.seconds:.1f} s and said:\n{self.said}"


def program(name):
    return os.path.join(BUILD, "tests", "mpi", name)


def run(ranks, *command, preload=LIBRARY, env=None, options=(), status=0, limit=LIMIT,
        launcher=Launcher(MPIRUN, OPEN_MPI)):
    """A job of so many ranks. status: what it must end with; "any", or "failure" for anything but 0.

    "failure or hang": where ranks leave with an error and what they said is looked at; Open MPI 4's mpirun may then hang.
    """
    words = launcher.words(ranks, options, preload)
    if launcher.is_open_mpi or status == 0:
        return execute([*words, *command], env, status, limit)
    # MPICH's mpirun may end before it has passed on what a rank said last: the ranks write into a file.
    with tempfile.NamedTemporaryFile("r", errors="replace") as file:
        return execute([*words, "sh", "-c", 'exec "$@" >>"$0" 2>&1', file.name, *command], env, status, limit, file)


def execute(command, env=None, status=0, limit=LIMIT, more=None):
    """more: a file with what else was said."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    variables.pop("LD_PRELOAD", None)
    variables.pop("LD_AUDIT", None)
    # Open MPI 4's AVX sums of 8 and 16 bits saturate, where C's wrap around. Open MPI 5's TCP leaves loopback out unless
    # it is named, and where an interface does not reach itself by another way, each rank says so, or has no way at all.
    variables.update({"OMPI_MCA_op": "^avx", "OMPI_MCA_btl_tcp_if_include": "127.0.0.0/8"})
    # Open MPI 4's gather and scatter by a binomial tree mix up blocks of derived types.
    variables["OMPI_MCA_coll_tuned_use_dynamic_rules"] = "1"
    variables.update({f"OMPI_MCA_coll_tuned_{each}_algorithm": "1" for each in ("gather", "scatter")})
    variables.update({"SLUICE_CHOICE": CHOICE, "SLUICE_CONFIG": "none"})  # (this host may have settings of its own)
    variables.update(env or {})
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        process.stdin.close()  # (Not /dev/null: where it is a file, MPICH hands on what others have written there.)
        result = outcome(process, limit)
        seconds = time.monotonic() - began
        output.seek(0)
        job = Job(command, result, (more.read() if more else "") + output.read(), seconds)
    # Of a job of MPICH 4.2 in which two ranks failed alike mpirun says 0, one time in two; without Sluice too.
    failed = result is not None if mpich_version() >= (4, 2) else result not in (None, 0)
    fits = {"any": result is not None, "failure": failed, "failure or hang": failed or result is None}.get(
        status, result == status)
    assert fits, f"this job should have ended with status {status}:\n{job}"
    return job


@functools.cache
def mpich_version():
    """The two first numbers; (0, 0) under Open MPI."""
    told = "" if OPEN_MPI else subprocess.run([MPIRUN, "--version"], stdout=subprocess.PIPE, text=True, timeout=LIMIT,
                                              check=False).stdout
    version = re.search(r"Version: +(\d+)\.(\d+)", told)
    return (int(version[1]), int(version[2])) if version else (0, 0)


def outcome(process, limit):
    """A process's status as soon as it ends; None if it had to be stopped. (Its own wait(limit) looks every 50 ms.)"""
    stopped = threading.Event()

    def end():
        stopped.set()
        stop(process)

    watchdog = threading.Timer(limit, end)
    watchdog.start()
    try:
        status = process.wait()
    finally:
        watchdog.cancel()
        watchdog.join()
    return None if stopped.is_set() else status


def stop(process):
    """mpirun is asked first: it ends its ranks."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def expect(job, *parts):
    for part in parts:
        assert part in job.said, f"{part!r} is not in what was said.\n{job}"


def expect_not(job, *parts):
    for part in parts:
        assert part not in job.said, f"{part!r} should not have been said.\n{job}"


def prompt(seconds, bound, job):
    """What a clock says is judged, and printed, in `make check-speed` alone: on a busy machine it says nothing."""
    if SPEED:
        print(f"  took {1000 * seconds:.3f} of {1000 * bound:.0f} ms")
        assert seconds < bound, f"took {seconds:.3f} s, not less than {bound}:\n{job}"


def shared_memory():
    """Names of Sluice's: of anybody's jobs on this host."""
    return set(glob.glob("/dev/shm/sluice-*"))


def left_behind(before):
    """Those that are new and that no process has."""
    names = shared_memory() - before
    for maps in glob.glob("/proc/[0-9]*/maps") if names else ():
        try:
            with open(maps, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        names = {name for name in names if name not in text}
    return names


def few(all_of_them, enough):
    """What a test repeats its jobs for: in `make check`, and with a second MPI in `make check-ci`, those that are enough."""
    return enough if BRIEF or SAMPLED else all_of_them


def sample(all_of_them, part):
    """What a test repeats its jobs for: in `make check` a part; with CHECK_WHOLE=1, as CI calls it, all."""
    return part if SAMPLED else all_of_them


def await_that(condition, what):
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until, "it never came about that " + what
        time.sleep(0.05)


def copied_library(folder):
    """A library with the modules for MPI libraries beside it, and no other."""
    for name in ("libsluice-openmpi.so", "libsluice-mpich.so", "libsluice-mpi5.so"):
        shutil.copy(os.path.join(os.path.dirname(LIBRARY), name), folder)
    return shutil.copy(LIBRARY, os.path.join(folder, "libsluice.so"))


def turkish_locale(folder):
    """Makes it in the folder. The settings of a program in that locale."""
    subprocess.run(["localedef", "-i", "tr_TR", "-f", "ISO-8859-9", os.path.join(folder, "tr_TR")], check=True, timeout=LIMIT)
    return f"LOCPATH={folder}", "LC_ALL=tr_TR"


def on_rank(rank, *settings):
    """Words to put before a program: one rank gets these NAME=VALUE; without a value, loses NAME."""
    return ["sh", os.path.join(SOURCE, "tests", "mpi", "on-rank"), str(rank), *settings, "--"]


def algorithms():
    """{collective: names} of every algorithm for one host; tests/hosts has those for several."""
    told = execute([os.path.join(BUILD, "sluice"), "info", "--json"]).said
    found = collections.defaultdict(list)
    for row in json.loads(told)["algorithms"]:
        if not any("several hosts" in need for need in row["needs"]):
            found[row["collective"]].append(row["name"])
    return found


def compiled(folder, name, source, *flags, compiler=None):
    target = os.path.join(folder, name)
    path = os.path.join(SOURCE, "tests", "mpi", source)
    subprocess.run([compiler or MPICC, path, "-o", target, *flags], check=True, timeout=LIMIT)
    return target


def fortran_flags(folder, *wanted):
    """Those options that the Fortran compiler knows."""
    source = os.path.join(folder, "empty.f90")
    with open(source, "w", encoding="ascii") as file:
        file.write("end\n")
    command = [MPIFORT, "-c", source, "-o", os.path.join(folder, "empty.o")]
    return [flag for flag in wanted if MPIFORT and subprocess.run(
        [*command, flag], stderr=subprocess.DEVNULL, timeout=LIMIT, check=False).returncode == 0]


def main():
    module = sys.modules["__main__"]
    tests = [(name, function) for name, function in vars(module).items() if name.startswith("test_")]
    wanted = sys.argv[1:]
    failed = ran = 0
    for name, function in tests:
        if wanted and not any(word in name for word in wanted):
            continue
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory() as folder:
                function(folder)
            outcome = "ok"
            ran += 1
        except Skipped as reason:
            outcome = f"skipped: {reason}"
        except Exception:  # pylint: disable=broad-except
            outcome = "FAILED"
            failed += 1
            traceback.print_exc(file=sys.stdout)
        print(f"{outcome:6} {name} ({time.monotonic() - began:.1f} s)", flush=True)
    if failed:
        sys.exit(1)
    sys.exit(0 if ran else 77)
