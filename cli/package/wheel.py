#!/usr/bin/env python3
"""Makes a wheel of a tarball's program: wheel.py attn-0.9.0-linux-x86_64.tar.gz. Prints the wheel's path.

pip installs the program itself as the script attn, so it starts without Python; `python -m attn` runs it too. A
static program needs no C library: the wheel is for every Linux of the architecture. Times are those of the tarball, so
the same tarball gives the same bytes.
"""
import base64
import hashlib
import pathlib
import sys
import tarfile
import time
import zipfile

MAIN = '''"""python -m attn: runs the program that this package has installed."""
import importlib.metadata
import os
import pathlib
import sys

# pip records where it has put scripts, but not after --target.
scripts = [file.locate() for file in importlib.metadata.files("attn") or [] if file.name == "attn"]
scripts.append(pathlib.Path(__file__).parent.parent / "bin" / "attn")
for script in filter(os.path.isfile, scripts):
    os.execv(script, ["attn", *sys.argv[1:]])
sys.exit("attn: error: the program is missing; expected pip install --force-reinstall of the wheel")
'''


def main(tarball):
    """Writes the wheel into the tarball's folder."""
    tarball = pathlib.Path(tarball).resolve()
    name, version, system, machine = tarball.name[:-len(".tar.gz")].split("-")
    if system != "linux":
        sys.exit(f"wheel.py: {tarball.name}: a program for {system}; expected one for linux")
    with tarfile.open(tarball) as archive:
        members = {member.name.split("/", 1)[-1]: member for member in archive}
        files = ("bin/attn", "share/doc/attn/copyright")
        program, licence = (archive.extractfile(members[file]).read() for file in files)
        when = time.gmtime(members["bin/attn"].mtime)[:6]
    tags = [f"{libc}_{machine}" for libc in ("manylinux_2_17", "musllinux_1_1")]
    info = f"{name}-{version}.dist-info"
    wheel = ["Wheel-Version: 1.0", "Generator: attn", "Root-Is-Purelib: false", *(f"Tag: py3-none-{tag}" for tag in tags)]
    metadata = [
        "Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}",
        "Summary: Attention from the shell, with PyTorch's numbers", "License: MIT", "Requires-Python: >=3.8"
    ]
    files = {
        "attn/__init__.py": b"",
        "attn/__main__.py": MAIN.encode(),
        f"{name}-{version}.data/scripts/attn": program,
        f"{info}/copyright": licence,
        f"{info}/METADATA": "\n".join(metadata + [""]).encode(),
        f"{info}/WHEEL": "\n".join(wheel + [""]).encode(),
    }
    record = [f"{info}/RECORD,,\n"]
    for file, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record.append(f"{file},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = "".join(record).encode()
    path = tarball.parent / f"{name}-{version}-py3-none-{'.'.join(tags)}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, data in files.items():
            entry = zipfile.ZipInfo(file, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in file else 0o100644) << 16
            archive.writestr(entry, data)
    print(path)


main(*sys.argv[1:])
