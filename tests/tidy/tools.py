# SPDX-License-Identifier: BSD-3-Clause
"""clang's tools of the one version that the style is tied to: others format and find other things."""
import re
import shutil
import subprocess
import sys

VERSION = "14"


def find(name):
    """The path of clang-format or clang-tidy; ends the program where it is not of that version."""
    seen = []
    for word in (f"{name}-{VERSION}", name):
        path = shutil.which(word)
        if path:
            told = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, timeout=60, check=False).stdout
            version = re.search(r"version ([\d.]+)", told)
            if version and version.group(1).split(".")[0] == VERSION:
                return path
            seen.append(f"{path} is {version.group(1) if version else 'of no known version'}")
    print(f"The style is that of {name} {VERSION}, which is not here ({'; '.join(seen) or 'nor any other'}).\n"
          f"On Debian 12: apt-get install {name}-{VERSION}")
    sys.exit(1)
