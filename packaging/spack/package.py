# SPDX-License-Identifier: BSD-3-Clause
"""For Spack: `spack repo create`, put this into packages/sluice/, `spack install sluice ^openmpi`.
One installation serves programs of any MPI: that of the spec builds the benchmarks and tests."""
import os

from spack.package import *

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage  # from Spack 1.0 on
except ImportError:
    pass


# variant, configure's option, module
MODULES = (("hwloc", "hwloc", "hwloc"), ("tls", "openssl", "tls"), ("verbs", "verbs", "verbs"))


class Sluice(AutotoolsPackage):
    """Sluice makes the collective operations of MPI programs faster: a shared library that is
    preloaded into unmodified programs, and carries their collectives over its own algorithms and
    transports."""

    homepage = "https://example.org/sluice"
    url = "https://example.org/sluice/sluice-0.1.0.tar.xz"
    git = "https://example.org/sluice/sluice.git"

    license("BSD-3-Clause")

    # A release has the checksum that `make dist` prints; until there is one, the sources are taken
    # from git.
    version("main", branch="main")

    variant("hwloc", default=True, description="Group ranks that share a cache or a NUMA node")
    variant("tls", default=True, description="Encrypt and authenticate between hosts, by OpenSSL")
    variant("verbs", default=False, description="RDMA between hosts, by libibverbs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool@2.4.6:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2:", type="build")
    # Of the benchmarks; the library serves Open MPI, MPICH and MPI 5's ABI with any.
    depends_on("mpi")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("openssl@3:", when="+tls")
    depends_on("rdma-core", when="+verbs")

    # std::atomic::wait, ranges, source_location
    conflicts("%gcc@:10", msg="Sluice needs C++20: GCC 11 or later")

    install_targets = ["install-strip"]

    def configure_args(self):
        args = [f"--with-mpi={self.spec['mpi'].mpicc}"]
        args += ["--without-clang", "--without-cuda", "--without-nccl"]
        # (Spack's compilers know where the libraries are.)
        for variant, option, _ in MODULES:
            sense = "with" if f"+{variant}" in self.spec else "without"
            args.append(f"--{sense}-{option}")
        return args

    def check(self):
        """Of `spack install --test=root`. (`make check` takes an hour, and many packages.)"""
        make("smoke")

    @run_after("install")
    def check_modules(self):
        """configure goes on without a library that it does not find."""
        for variant, _, module in MODULES:
            path = os.path.join(self.prefix.lib, "sluice", f"libsluice-{module}.so")
            if f"+{variant}" in self.spec and not os.path.exists(path):
                raise InstallError(f"configure did not find what {path} needs")

    def setup_run_environment(self, env):
        env.set("LIBSLUICE", os.path.join(self.prefix.lib, "libsluice.so"))

    def test_smoke(self):
        """every collective on two ranks, results checked; encryption; a program without MPI"""
        smoke = Executable(os.path.join(self.prefix.libexec, "sluice", "smoke"))
        smoke.add_default_env("MPIRUN", os.path.join(self.spec["mpi"].prefix.bin, "mpirun"))
        out = smoke(output=str.split, error=str.split)
        assert " 0 failed" in out, out
