# SPDX-License-Identifier: BSD-3-Clause
"""Real programs from Debian's packages as tests: what each is started with, and which of what it says is a result.

An application writes its input into a folder, is started there, and its results are numbers and words that must be
equal without and with Sluice; numbers as near as `tolerance` (relative), for sums may be taken in another order.
"""
import gzip
import math
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "mpi"))

import jobs  # noqa: E402  pylint: disable=wrong-import-position

# One thread a rank: the ranks are what keeps the processors busy. OpenBLAS and FFTW would start more.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# What carries messages: {name: (options of mpirun, Sluice's settings)}.
TRANSPORTS = {"tcp": (("--mca", "btl", "self,tcp"), {"SLUICE_TRANSPORT": "tcp"}), "shm": ((), {})}
# Where calls are counted, MPI gets none by trial.
COUNTED = {"SLUICE_STATS": "1", "SLUICE_CHOICE": "rules"}
SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests"
OPENFOAM = "/usr/share/openfoam"
SILICON = "/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz"


def in_order(pattern, text):
    """All that a pattern's groups match, each a row of words."""
    found = re.findall(pattern, text, re.M)
    assert found, f"no {pattern!r} in:\n{text}"
    return [row if isinstance(row, tuple) else (row,) for row in found]


class Application:
    tolerance = 1e-6

    def command(self, folder, ranks):
        """Prepares the folder; the words to start the program with."""
        raise NotImplementedError

    def environment(self):
        return {}

    def results(self, folder, said):
        """Rows of words."""
        raise NotImplementedError

    def run(self, folder, ranks, with_sluice, stats=True, transport="tcp"):
        """(job, results)."""
        command = self.command(folder, ranks)
        program = shutil.which(command[0])
        if not jobs.OPEN_MPI or not program:
            raise jobs.Skipped(f"no {command[0]}, or it is not this MPI's")
        options, settings = TRANSPORTS[transport]
        env = {**ENVIRONMENT, **self.environment(), **settings, **(COUNTED if stats else {})}
        job = jobs.run(ranks, program, *command[1:], preload=jobs.LIBRARY if with_sluice else None, env=env,
                       options=(*options, "--wdir", folder))
        said = "\n".join(line for line in job.said.split("\n") if not line.startswith("sluice: "))
        return job, self.results(folder, said)


class Hpcc(Application):
    """Linpack, transposition, random access, Fourier transforms; it checks all its results itself."""

    def command(self, folder, ranks):
        with open(os.path.join(HERE, "hpccinf.txt"), encoding="ascii") as file:
            text = file.read().replace("@COLUMNS@", str(ranks))
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as file:
            file.write(text)
        output = os.path.join(folder, "hpccoutf.txt")
        if os.path.exists(output):
            os.remove(output)
        return ["hpcc"]

    def results(self, folder, said):
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="ascii", errors="replace") as file:
            told = file.read()
        assert "FAILED" not in told, told
        rows = in_order(r"^(Success|PTRANS_residual|MPIRandomAccess_\w*Errors|PTRANS_n|HPL_N)=(\S+)$", told)
        assert ("Success", "1") in rows, told
        assert float(in_order(r"^MPIFFT_maxErr=(\S+)$", told)[0][0]) < 1e-12, told
        return rows + in_order(r"^ +(\d+) tests completed and (passed|failed)", told)


class Lammps(Application):
    """A Lennard-Jones liquid: temperature, energies and pressure over the time."""

    def command(self, folder, ranks):
        return ["lmp", "-in", os.path.join(HERE, "melt.in"), "-log", "none"]

    def results(self, folder, said):
        number = r"(-?[\d.e+-]+)"
        return in_order(rf"^ +(\d+) +{number} +{number} +{number} +{number} +{number} *$", said)


class QuantumEspresso(Application):
    """The electrons of silicon: the energy at each iteration, and its parts."""

    tolerance = 1e-7

    def command(self, folder, ranks):
        if not os.path.exists(SILICON):
            raise jobs.Skipped("no pseudopotential: " + SILICON)
        with gzip.open(SILICON) as packed, open(os.path.join(folder, "Si.UPF"), "wb") as file:
            shutil.copyfileobj(packed, file)
        shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
        return ["pw.x", "-in", os.path.join(HERE, "silicon.in")]

    def results(self, folder, said):
        assert "convergence has been achieved" in said, said
        return in_order(r"^!? +((?:\w|-)+ (?:energy|contribution)) +(?:= +)?(-?[\d.]+) Ry", said)


class OpenFoam(Application):
    """A fluid in a box whose lid slides: how far each linear system was from its solution at first."""

    tolerance = 1e-4

    def environment(self):
        return {"WM_PROJECT_DIR": OPENFOAM}

    def command(self, folder, ranks):
        with open(os.path.join(HERE, "cavity.in"), encoding="ascii") as file:
            _, *files = re.split(r"^==> (.*)\n", file.read().replace("@RANKS@", str(ranks)), flags=re.M)
        for path, text in zip(files[::2], files[1::2]):
            path = os.path.join(folder, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        for program in (["blockMesh"], ["decomposePar", "-force"]):
            if not shutil.which(program[0]):
                raise jobs.Skipped(f"no {program[0]}")
            jobs.execute([*program, "-case", folder], self.environment())
        return ["icoFoam", "-parallel"]

    def results(self, folder, said):
        return in_order(r"Solving for (\w+), Initial residual = (\S+),", said)


class Partition(Application):
    """A mesh that PT-Scotch distributes, from two threads of each rank."""

    def command(self, folder, ranks):
        python = "/usr/bin/python3"
        found = [python, "-c", "import petsc4py"]
        if not os.path.exists(python) or subprocess.run(found, stderr=subprocess.DEVNULL, check=False).returncode:
            raise jobs.Skipped("no petsc4py")
        return [python, os.path.join(HERE, "partition.py")]

    def results(self, folder, said):
        rows = in_order(r"^round (\d+): (\d+) cells, (\d+) on one rank", said)
        assert len(rows) == 8, said
        return rows


class Scalapack(Application):
    """One of ScaLAPACK's own test programs: which tests it made, and the residuals' verdicts."""

    tolerance = 0.02  # of what is printed with two digits behind the point

    def __init__(self, tester):
        self.tester = tester

    def command(self, folder, ranks):
        for name in os.listdir(SCALAPACK) if os.path.isdir(SCALAPACK) else ():
            if name.endswith(".dat") and not os.path.exists(os.path.join(folder, name)):
                shutil.copy(os.path.join(SCALAPACK, name), folder)
        return [os.path.join(SCALAPACK, self.tester)]

    def results(self, folder, said):
        rows = in_order(r"^ +(\d+) tests (completed and passed|completed and failed|skipped)", said)
        assert rows[0][0] != "0" and rows[1][0] == "0", said
        return rows


def is_equal(one, other, tolerance):
    try:
        return math.isclose(float(one), float(other), rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    except ValueError:
        return one == other


def compare(application, without, with_sluice):
    assert len(without) == len(with_sluice), f"{len(without)} results without Sluice, {len(with_sluice)} with it"
    for one, other in zip(without, with_sluice):
        equal = len(one) == len(other) and all(map(is_equal, one, other, [application.tolerance] * len(one)))
        assert equal, f"without Sluice {one}, with it {other}"


def share(job):
    """How much of its time, in percent, rank 0 spent in collectives."""
    return float(in_order(r"^sluice: rank 0: in all \S+ ms, (\S+) % of the ", job.said)[0][0])


def carried_share(job):
    """How many of rank 0's calls Sluice carried, in percent."""
    return float(in_order(r"^sluice: rank 0: in all .* calls carried, (\S+) %$", job.said)[0][0])


def carried(job):
    """Calls that Sluice made, by rank 0's own account."""
    rows = re.findall(r"^sluice: rank 0: (.+?) +(\w+) +(\w+) +([\w+]+) +(\d+) +\d+ +[\d.]+ +[\d.]+$", job.said, re.M)
    calls = sum(int(row[4]) for row in rows if row[2] != "mpi")
    assert calls > 0, f"no call was carried\n{job}"
    return calls
