"""The folder of malformed files and its manifest, and what their writers share."""
import struct

MATRIX = [[1, 2, 3], [4, 5, 6]]
NUMBERS = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
GIB = 2**30


class Folder:
    """Files of the kind that is being written are KIND/NAME.KIND."""
    kind = ""

    def __init__(self, path, small):
        self.path, self.records = path, []
        self.shrink = 100 if small else 1

    def put(self, file, content, expect, why):
        """content: bytes, text, or a function that is given the open file."""
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as out:
            if callable(content):
                content(out)
            else:
                out.write(content.encode() if isinstance(content, str) else content)
        self.records.append({"file": file, "expect": expect, "why": why})

    def refused(self, name, content, why, expect="refused"):
        self.put(f"{self.kind}/{name}.{self.kind}", content, expect, why)

    def valid(self, name, content, why):
        self.refused(name, content, why, "valid")

    def either(self, name, content, why):
        self.refused(name, content, why, "either")


def repeat(piece, size):
    """A writer of `size` bytes of a repeated piece, in blocks."""
    block = piece * (2**20 // len(piece))

    def write(out):
        for _ in range(size // len(block)):
            out.write(block)
        out.write(block[: size % len(block)])
    return write


def joined(*parts):
    def write(out):
        for part in parts:
            part(out) if callable(part) else out.write(part)
    return write
