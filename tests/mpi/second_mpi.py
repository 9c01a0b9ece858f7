# SPDX-License-Identifier: BSD-3-Clause
"""Programs of a second MPI, and their tests, over the library that this build made.

They are kept in a folder of the build folder, which is configured as this one is but for the MPI. The library, its modules
and the command are this build's.
"""
import glob
import os
import pathlib
import shlex
import subprocess

import jobs

JOBS = f"-j{os.cpu_count()}"
# What the programs of tests/cuda need.
DRIVERS = ("tests/cuda/standin/libcuda.so.1", "tests/cuda/standin/old/libcuda.so.1")


class SecondMpi:
    """wrapper: its compiler wrapper. programs: of the build folder, what `make` is to make, and `tests`, what it is to run;
    in `make check-long` it makes and runs all of tests/mpi. more: of both, in any case. (In `make check-ci` its tests start
    fewer jobs of a kind: jobs.few.)"""

    def __init__(self, wrapper, folder, programs, tests, more=((), ())):
        self.wrapper, self.folder = wrapper, os.path.join(jobs.BUILD, folder)
        self.programs = [*(["mpi-programs"] if jobs.LONG else programs), *more[0]]
        self.tests = [*(["$(mpi_tests)"] if jobs.LONG else tests), *more[1]]
        self.is_built = False

    def program(self, name):
        return os.path.join(self.folder, name)

    def failed_logs(self):
        """How the logs of its tests that failed end."""
        results = pathlib.Path(self.folder, "tests").glob("*/*.trs")
        logs = [trs.with_suffix(".log") for trs in results if ":global-test-result: FAIL" in trs.read_text()]
        return "".join(f"\n{log}:\n...{log.read_text(errors='replace')[-4000:]}" for log in logs)

    def make(self, *words):
        # What the outer make says to its children is not for this one, which has its own tests take turns: this test holds
        # the machine for them, one seat of it.
        ours = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CHECK_LONG", "CHECK_BRIEF", "MACHINE_IS_HELD")
        env = {k: v for k, v in os.environ.items() if k not in ours}
        env |= {} if jobs.LONG else {"CHECK_BRIEF": "1"}
        env |= {"SEATS": "1", "MACHINE_LOCK": os.path.join(self.folder, "tests.lock")}
        command = [os.environ.get("MAKE") or "make", "-C", self.folder, *words]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{self.failed_logs()}"
        return done.stdout

    def configure(self):
        os.makedirs(self.folder, exist_ok=True)
        told = subprocess.run([os.path.join(jobs.BUILD, "config.status"), "--config"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        command = [os.path.join(jobs.SOURCE, "configure"), *shlex.split(told), "--srcdir=" + jobs.SOURCE,
                   "--with-mpi=" + self.wrapper, "OTHER_MPICC=" + jobs.MPICC, "MPICXX=", "MPIFORT=", "MPIRUN="]
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        assert done.returncode == 0, done.stdout

    def borrow(self, name):
        if not os.path.exists(os.path.join(jobs.BUILD, name)):
            return  # built without what it needs
        path = pathlib.Path(self.folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(os.path.join(jobs.BUILD, name))

    def build(self):
        if self.is_built:
            return
        if not os.path.exists(os.path.join(self.folder, "config.status")):
            self.configure()
        found = glob.glob(os.path.join(jobs.BUILD, ".libs", "libsluice*.so*"))
        libraries = [".libs/" + os.path.basename(path) for path in found]
        for name in ("libcore.la", ".libs/libcore.a", "sluice", *libraries, *DRIVERS):
            self.borrow(name)
        self.make(JOBS, "-o", "libcore.la", *self.programs)
        self.is_built = True

    def setting(self, name):
        """A variable of its Makefile."""
        with open(os.path.join(self.folder, "Makefile"), encoding="utf-8") as file:
            return next(line.split("=", 1)[1].strip() for line in file if line.startswith(name + " ="))

    def launcher(self):
        return jobs.Launcher(self.setting("MPIRUN"), self.setting("MPI_FLAVOUR") == "openmpi")

    def run_tests(self):
        self.build()
        said = self.make(JOBS, "check-TESTS", "check_PROGRAMS=", "TESTS=" + " ".join(self.tests))
        results = [line for line in said.splitlines() if line.startswith(("PASS: ", "SKIP: "))]
        assert any(line.startswith("PASS: ") for line in results), said
        print("  " + "\n  ".join(results))
