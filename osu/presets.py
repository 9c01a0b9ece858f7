# SPDX-License-Identifier: BSD-3-Clause
"""What Sluice promises, as runs of compare: compare --preset NAME, or osu/NAME-bench.

A preset is a function from its own words to (name, options of compare, microseconds that a call's peer takes longer).
What it does not know goes to compare, behind its own. Each run leaves NAME-bench-RUN.json and .png in the current folder
(host: in that of --keep, with the tables in .txt). Exit status 1 if a promise is not kept. Both sides meet in MPI's own
barrier between calls: the state in which it leaves the ranks is a part of what is measured. Each preset wants a quiet
machine of 2 processors; 4 and 8 ranks share them on purpose.
"""
import argparse
import os
import re
import shlex

import launch
import programs

SAME_BARRIER = ["--env", "SLUICE_BARRIER=mpi"]
MEASURED = "-M 4294967296 -T mpi_float"


def parse(name, about, words, **own):
    """(the preset's options, the words for compare)"""
    parser = argparse.ArgumentParser(prog=name + "-bench", description=about, allow_abbrev=False,
                                     usage="%(prog)s [OPTION...] [OPTION OF COMPARE...]")
    for option, settings in own.items():
        parser.add_argument("--" + option.replace("_", "-"), **settings)
    return parser.parse_known_args(words)


def requirements(name, geomean, least, folder="."):
    path = os.path.join(folder, name)
    return ["--require-geomean", str(geomean), "--require-min", str(least), "--json", path + ".json", "--png", path + ".png"]


def host(words):
    """Inside one host: 4 B to 16 MB in powers of two, against the faster of Open MPI as it is and, on 2 ranks, MPICH at
    each point. (MPICH does not yield, and collapses where ranks share processors.) Only runs count in which the
    processors of a virtual machine were near each other."""
    own, words = parse("host", host.__doc__, words,
                       mpich={"metavar": "FOLDER", "help": "these benchmarks, or the OSU Micro-Benchmarks, built with MPICH"},
                       ranks={"default": "2 4 8", "help": "default %(default)s"},
                       keep={"default": ".", "metavar": "FOLDER", "help": "for .json, .png and .txt"})
    if own.mpich and not os.access(os.path.join(own.mpich, "osu_allreduce"), os.X_OK):
        raise launch.Failure(f"host-bench: --mpich: there is no osu_allreduce in {own.mpich}")
    folder = shlex.quote(programs.find_programs(None))
    mpirun = os.environ.get("MPIRUN", "mpirun.openmpi")
    scans = "scan,exscan"
    pair = [("allreduce", 2.3, 0.97, "allreduce"), ("reduce", 2.0, 0.97, "reduce"), ("barrier", 2.0, 0.97, "barrier"),
            ("gather", 1.6, 0.97, "allgather,allgatherv,reduce_scatter"), ("move", 1.5, 0.97, "bcast,alltoall,alltoallv"),
            ("root", 1.2, 0.95, "gather,gatherv,scatter,scatterv"), ("scan", 1.2, 0.95, scans)]
    many = [("barrier", 1.8, 0.97, "barrier"), ("scan", 2.0, 0.95, scans),
            ("data", 1.8, 0.97, "allreduce,reduce,bcast,allgather,allgatherv,reduce_scatter,alltoall,alltoallv")]
    for ranks in map(int, own.ranks.replace(",", " ").split()):
        for name, geomean, least, collectives in pair if ranks == 2 else many:
            moves = collectives != "barrier"
            measured = "-m {min}:{max} " + MEASURED if moves else ""
            peers = ["--against", f"{mpirun} --oversubscribe -n {{ranks}} {folder}/osu_{{collective}} {measured}"]
            if ranks == 2 and own.mpich:
                peers += ["--against", f"mpirun.mpich -n {{ranks}} {shlex.quote(own.mpich)}/osu_{{collective}} {measured}"]
            run = f"host-bench-{name}-{ranks}"
            yield os.path.join(own.keep, run + ".txt"), [
                "--probe", f"{folder}/osu_shm_floor -n 2 -m 0:0 -i 20000", "--shm", "-n", str(ranks), "--collectives", collectives,
                "--sizes", "4:16m:2", "--peer-name", "the best MPI", *requirements(run, geomean, least, own.keep), *peers,
                *(SAME_BARRIER if moves else []), *words], None


def tcp(words):
    """Over loopback TCP: 4 B to 4 MB in powers of four, against Open MPI's own TCP on 2 and on 4 ranks, and on 2 ranks
    against gloo's at its best settings."""
    own, words = parse("tcp", tcp.__doc__, words, gloo_benchmark={
        "metavar": "FILE", "help": "gloo's benchmark program, built with MPI; without it gloo is left out"})
    runs = [("barrier-2", 1.8, 0.97, ["barrier"]), ("allreduce-2", 1.8, 0.97, ["allreduce"]),
            ("data-2", 1.6, 0.97, ["bcast,reduce,allgather,alltoallv"]), ("barrier-4", 2.0, 0.97, ["barrier"]),
            ("data-4", 2.0, 0.97, ["allreduce,bcast,reduce,allgather,alltoallv"]),
            ("root-4", 1.5, 0.95, ["gather,gatherv,scatter,scatterv"]), ("scan-4", 1.2, 0.95, ["scan,exscan"])]
    if own.gloo_benchmark:
        runs.append(("gloo-2", 2.0, 0.9, ["allreduce", "--gloo", own.gloo_benchmark]))
    for name, geomean, least, what in runs:
        barrier = [] if name.startswith(("barrier", "gloo")) else SAME_BARRIER
        yield None, ["-n", name[-1], "--sizes", "4:4m:4", *requirements("tcp-bench-" + name, geomean, least), *barrier,
                     "--collectives", *what, *words], None


def tls(words):
    """What encryption costs over loopback: 2 ranks with SLUICE_TLS=psk. The peer is a floor: Sluice without encryption,
    plus the time that OpenSSL itself takes (`openssl speed`, the cipher that `sluice info` names) to encrypt and to
    decrypt on one processor what a rank sends and receives: the vector, in records of at most 16 KB, each message with
    a header. 1.3 times the floor is what Sluice promises."""
    own, words = parse("tls", tls.__doc__, words, preload={"help": "libsluice.so (default: this build's)"})
    preload = programs.find_preload(own.preload)
    plain = ["SLUICE_TRANSPORT=tcp", "SLUICE_BARRIER=mpi", "SLUICE_CHOICE=rules"]
    mpirun = os.environ.get("MPIRUN", "mpirun")
    folder = shlex.quote(programs.find_programs(None))
    variables = " ".join("-x " + shlex.quote(each) for each in ["LD_PRELOAD=" + preload, *plain])
    name, seconds = openssl(os.path.join(os.path.dirname(os.path.dirname(preload)), "sluice"))
    encrypted = [word for each in [*plain, "SLUICE_TLS=psk", "SLUICE_TLS_LOCAL=on"] for word in ("--env", each)]
    yield None, ["-n", "2", "--collectives", "allreduce", "--sizes", "8,8k,1m", "--rounds", "15", "--shm", "--preload", preload,
                 "--mpirun", mpirun, "--against", f"{mpirun} -n {{ranks}} {variables} {folder}/osu_{{collective}} "
                 f"-m {{size}}:{{size}} {MEASURED}", "--peer-name", f"plain TCP and {name}", "--png", "",
                 "--require-min", f"{1 / 1.3}", *encrypted, *words], lambda size: 1e6 * seconds(size)


HEADER, RECORD = 56, 16384  # bytes: transports/link/frame.h, transports/tls


def openssl(sluice):
    """(the cipher, a function: seconds to encrypt and decrypt a message of so many bytes)"""
    told, _ = launch.run([sluice, "info"], 60)
    named = re.search(r"^encryption +(OpenSSL .*), TLS 1\.3, TLS_(\w+?)_SHA\d+$", told, re.M)
    if not named:
        raise launch.Failure("`sluice info` says that encryption cannot be had")
    cipher = named[2].replace("_", "-").lower()
    known = {}

    def each(size, *way):
        if (size, way) not in known:
            words = ["openssl", "speed", "-seconds", "1", "-bytes", str(size), "-aead", *way, "-evp", cipher, "-mr"]
            said, _ = launch.run(words, 60)
            known[size, way] = size / float(re.search(r"^\+F:.*:([\d.]+)$", said, re.M)[1])
        return known[size, way]

    def seconds(size):
        whole, rest = divmod(size + HEADER, RECORD)
        return sum(whole * each(RECORD, *way) + (each(rest, *way) if rest else 0) for way in ((), ("-decrypt",)))
    return f"{named[1]}'s {cipher}", seconds


PRESETS = {"host": host, "tcp": tcp, "tls": tls}
