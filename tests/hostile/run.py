"""One run of attn with its processor time and memory, and arrays as files."""
import io
import math
import os
import resource
import sys
import zipfile

from support.array_files import npy_head, safetensors

ATTN = ""  # the program; hostile_shapes.py sets it
ERRORS = (2, 3, 4)
MB = 1 << 20


class Run:
    """One command; its exit code, processor time, memory and output."""

    def __init__(self, arguments, stdin=os.devnull):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            for file, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), file)
            os.environ["COLUMNS"] = "200"
            os.execv(ATTN, [ATTN] + arguments)
        _, status, used = os.wait4(pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.seconds = used.ru_utime + used.ru_stime
        self.mb = used.ru_maxrss / (MB if sys.platform == "darwin" else 1024)
        self.shown = " ".join(arguments) + ("" if stdin == os.devnull else " < " + stdin)

    @property
    def out(self):
        return open("out", "rb").read()

    @property
    def err(self):
        return open("err", "rb").read()


def put(name, data):
    with open(name, "wb") as file:
        for piece in [data] if isinstance(data, (bytes, str)) else data:
            file.write(piece.encode() if isinstance(piece, str) else piece)
    return name


def npy(shape, descr="<f4", data=None):
    return npy_head(shape, descr) + (bytes(4 * math.prod(shape)) if data is None else data)


def npz(entries, method=zipfile.ZIP_DEFLATED):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for name, data in entries:
            file.writestr(name, data)
    return archive.getvalue()


def npz_with(metadata):
    return npz([("context_vectors.npy", npy([2, 2])), ("__metadata__.npy", npy([len(metadata)], "|u1", metadata))])


def tensors(shapes, metadata=None):
    return safetensors({name: ("F32", shape, bytes(4 * math.prod(shape))) for name, shape in shapes}, metadata)
