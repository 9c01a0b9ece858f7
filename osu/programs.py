# SPDX-License-Identifier: BSD-3-Clause
"""Measuring with our benchmarks (or any of the same names, options and output), bare or with Sluice."""
import os
import shutil
import subprocess

import launch
import output
from launch import Failure

COLLECTIVES = ("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "barrier", "bcast", "exscan",
               "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter", "scatterv")


class Programs:
    """
    starter   function(ranks, ["NAME=VALUE"]): the words that start an MPI program with these set for its ranks
    folder    where osu_allreduce and its kin are
    data      options of those that move data, such as ["-T", "mpi_float"]
    counts    more options of the benchmarks, such as ["-i", "100"]
    timeout   of one run, in seconds
    """

    def __init__(self, starter, folder, data, counts=(), timeout=300):
        self.starter = starter
        self.folder = folder
        self.data = list(data)
        self.counts = list(counts)
        self.timeout = timeout
        self.variables = []
        self.preload = None

    def with_sluice(self, preload, variables=()):
        """The same, with Sluice under the ranks, which does the calls itself, unless SLUICE_CHOICE is among the variables."""
        other = Programs(self.starter, self.folder, self.data, self.counts, self.timeout)
        other.preload = preload
        chosen = [] if any(each.startswith("SLUICE_CHOICE=") for each in variables) else ["SLUICE_CHOICE=rules"]
        other.variables = ["LD_PRELOAD=" + preload, *chosen, *variables]
        return other

    def run(self, collective, ranks, low, high, counts, variables=()):
        command = self.starter(ranks, self.variables + list(variables))
        command.append(os.path.join(self.folder, "osu_" + collective))
        if collective != "barrier":
            command += ["-m", f"{low}:{high}", "-M", str(4 << 30), *self.data]
        return launch.run(command + counts, self.timeout)

    def measure(self, collective, ranks, sizes):
        """{bytes: us}; sizes are [0] for a barrier."""
        latencies = {}
        for low, high in spans(sizes):
            said, _ = self.run(collective, ranks, low, high, self.counts)
            latencies.update(output.parse(said))
        missing = [size for size in sizes if size not in latencies]
        if missing:
            raise Failure(f"osu_{collective} printed nothing for {missing} bytes")
        return {size: latencies[size] for size in sizes}

    def check_carried(self, collective, ranks, sizes):
        """Sluice's own count must say that it, and not MPI, carried the calls of a short run."""
        calls = {}
        for low, high in spans(sizes):
            _, complained = self.run(collective, ranks, low, high, ["-i", "2", "-x", "0"], ["SLUICE_STATS=1"])
            for key, number in output.carried_calls(complained, collective).items():
                calls[key] = calls.get(key, 0) + number
        if not calls:
            raise Failure(f"Sluice carried no {collective}: is {self.preload} libsluice.so, and did it reach the "
                          f"ranks? They said:\n{complained[-2000:]}")
        by_mpi = sum(number for (algorithm, _), number in calls.items() if algorithm == "mpi")
        if by_mpi or sum(calls.values()) < 2 * len(sizes):
            raise Failure(f"Sluice handed calls of {collective} on {ranks} ranks to MPI; (algorithm, transport) and "
                          f"calls: {calls}")


def spans(sizes):
    """What to give to -m so that the benchmarks, which double, print all of the sizes."""
    ratios = {after / before for before, after in zip(sizes, sizes[1:])}
    if len(ratios) < 2 and all(ratio.is_integer() and int(ratio) & (int(ratio) - 1) == 0 for ratio in ratios):
        return [(sizes[0], sizes[-1])]
    return [(size, size) for size in sizes]


def open_mpi_starter(words):
    """A starter, for Programs, from mpirun and its arguments."""
    def start(ranks, variables):
        command = words + ["-n", str(ranks)]
        for variable in variables:
            command += ["-x", variable]
        return command
    return start


def mpich_starter(words):
    def start(ranks, variables):
        command = words + ["-n", str(ranks)]
        for variable in variables:
            command += ["-genv", *variable.split("=", 1)]
        return command
    return start


def is_mpich(mpirun):
    try:
        done = subprocess.run([mpirun, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
    except OSError as error:
        raise Failure(f"cannot start {mpirun}: {error.strerror}") from error
    return "hydra" in done.stdout.lower()


HERE = os.path.dirname(os.path.abspath(__file__))
# Where a build may be: the current folder, and in a source tree the one that its GNUmakefile makes.
BUILDS = (os.getcwd(), os.path.normpath(os.path.join(HERE, "..", "build")))


def find_programs(named):
    """The folder of the benchmarks: the one named with --programs, beside these scripts, or of a build."""
    folders = [named] if named else [HERE] + [os.path.join(build, "osu") for build in BUILDS]
    for folder in folders:
        if os.path.isfile(os.path.join(folder, "osu_allreduce")):
            return os.path.abspath(folder)
    raise Failure(f"--programs: there is no osu_allreduce in {' or '.join(folders)}")


def find_preload(named):
    """libsluice.so: the one named with --preload, of a build, or the installed one."""
    paths = [named] if named else [os.path.join(build, ".libs", "libsluice.so") for build in BUILDS]
    if not named and shutil.which("pkg-config"):
        done = subprocess.run(["pkg-config", "--variable=preload", "sluice"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        paths += done.stdout.split()
    for path in paths:
        if os.path.isfile(path):
            return os.path.abspath(path)
    raise Failure(f"--preload: there is no {' or '.join(paths)}")
