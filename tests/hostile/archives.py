"""Archives npz of any number of entries, sizes and lies, under any limit, to every command that reads one."""
import json
import os
import struct
import zlib

from hostile.run import ERRORS, MB, Run, npy, put

WHOLE = "ATTN_TEST_WHOLE" in os.environ  # all archives, not a few


class Archive:
    """An npz written by hand: `entries` float32 arrays of `floats` zeros each, with false sizes."""

    def __init__(self, name, entries, floats, method, metadata=None, lie=None):
        self.name, self.method, self.lie = name, method, lie
        self.entries, self.floats, self.metadata = entries, floats, metadata
        pid = os.fork()  # child processes inherit this process's peak of memory
        if pid == 0:
            self.write()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        with open(name + ".sizes") as file:
            self.sizes = json.load(file)  # declared, and packed
        os.remove(name + ".sizes")

    def write(self):
        self.sizes, directory = [], []
        head = npy([self.floats], data=b"")
        size = len(head) + 4 * self.floats
        with open(self.name, "wb") as file:
            whole = head + bytes(4 * self.floats) if self.method == 8 or self.floats < MB else None
            packed = None if whole is None else self.packed(whole)
            crc = self.crc_of_zeros(head, 4 * self.floats) if whole is None else zlib.crc32(whole)
            for i in range(self.entries):
                self.put(file, directory, "a%d.npy" % i, packed, crc, size, head)
            if self.metadata is not None:
                data = npy([len(self.metadata)], "|u1", self.metadata)
                self.put(file, directory, "__metadata__.npy", self.packed(data), zlib.crc32(data), len(data), b"")
            start = file.tell()
            file.write(b"".join(directory))
            count = len(directory)
            file.write(struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, count, count, file.tell() - start, start, 0))
        with open(self.name + ".sizes", "w") as file:
            json.dump(self.sizes, file)

    @staticmethod
    def crc_of_zeros(head, zeros):
        crc, block = zlib.crc32(head), bytes(MB)
        for left in range(zeros, 0, -MB):
            crc = zlib.crc32(block[:left], crc)
        return crc

    def packed(self, data):
        if self.method == 0:
            return data
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush()

    def put(self, file, directory, name, packed, crc, size, head):
        length = size if packed is None else len(packed)
        self.sizes.append((size, length))
        said = {"larger": size + 4096, "smaller": size - 4}.get(self.lie, size)
        offset, flags = file.tell(), 8 if self.lie == "descriptor" else 0
        if self.lie == "shared" and directory:
            offset, name = 0, "a0.npy"  # the first entry's
        else:
            behind = (0, 0, 0) if flags else (crc, length, said)
            file.write(struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, flags, self.method, 0, 33, *behind, len(name), 0))
            file.write(name.encode())
            if packed is None:  # zeros that take no space on the disk
                file.write(head)
                file.seek(size - len(head) - 1, 1)
                file.write(b"\0")
            else:
                file.write(packed)
            if flags:
                file.write(struct.pack("<IIII", 0x08074b50, crc, length, said))
        directory.append(struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 20, 20, flags, self.method, 0, 33, crc, length,
                                     said, len(name), 0, 0, 0, 0, 0, offset) + name.encode())

    def is_bomb(self):
        """As a whole; one entry that is a bomb is found by the same rule."""
        of = lambda size, packed: size > 256 * MB and size // 200 > packed
        return of(*map(sum, zip(*self.sizes))) or any(of(*sizes) for sizes in self.sizes)

    def is_damaged(self):
        return self.lie in ("larger", "smaller") or (self.lie == "shared" and len(self.sizes) > 1)

    def doubles(self):
        """Bytes that its arrays take once they are read."""
        return 8 * self.floats * self.entries


def commands_of(archive):
    """Arguments of everything that reads an npz, and the bytes that the arrays take that it must read: none where it
    looks at one array, or at none."""
    file, all_of_it = archive.name, archive.doubles()
    yield ["inspect", file], 0
    yield ["inspect", "--format", "json", file], 0
    yield ["compare", file, file], 2 * all_of_it
    yield ["compare", file, "small.npz"], all_of_it
    yield ["compare", "small.npz", file], all_of_it
    yield ["compare", file + ":a0", file + ":a0"], 16 * archive.floats
    yield ["plot", file], 0
    yield ["plot", file, "small.npz"], 0
    yield ["explain", file], 0
    yield ["self", file], 0
    yield ["self", file + ":a0"], 0
    yield ["explain", "self", file], 0
    yield ["self", "two.csv", "--mask", file + ":a0"], 0
    yield ["self", "two.csv", "--weights", file], 0
    yield ["sdpa", file], 0
    yield ["batch", put("named.ndjson", json.dumps({"mode": "self", "inputs": file}) + "\n")], 0
    yield ["batch", "--mode", "self", "--each", file], 0


def check_archives(gpt2, faults):
    Archive("small.npz", 1, 4, 8)
    result = json.dumps({"schema": "attn.result/1", "mode": "self", "config": {"mode": "self"}}).encode()
    other = b'{"schema":"another"}'
    lies = (None, "larger", "smaller", "shared", "descriptor")
    plans = [(entries, floats, 8, metadata, lie) for entries in (1, 3, 130, 3000) for floats in (6, 250000, 16 * MB)
             for metadata in (None, result, other) for lie in lies if entries * floats <= 130 * 16 * MB]
    plans += [(entries, floats, 0, metadata, lie) for entries, floats in ((1, 6), (40, 60000), (1, 50 * MB), (3, 40 * MB))
              for metadata in (None, result, other) for lie in (None, "descriptor")]
    plans = plans if WHOLE else [plan for i, plan in enumerate(plans) if i % 7 == 1 or plan[1] == 50 * MB]
    runs = 0
    for number, (entries, floats, method, metadata, lie) in enumerate(plans):
        archive = Archive("archive.npz", entries, floats, method, metadata, lie)
        bad = archive.is_bomb() or archive.is_damaged()
        for addresses in (None, 600 * MB) if WHOLE or number % 2 == 0 else (600 * MB,):
            for arguments, needed in commands_of(archive):
                limit = float("inf") if addresses is None else addresses
                over = needed + 16 * MB > limit
                if not bad and not over and (needed > 300 * MB or archive.doubles() > 300 * MB and arguments[0] == "plot"):
                    continue  # legitimate work, and slow
                run = Run(arguments, addresses=addresses)
                runs += 1
                shown = "%s of %d x %d, method %d, %s, addresses %s: code %d, %.2f s, %.0f MB: %s" % (
                    run.shown, entries, floats, method, lie, addresses, run.code, run.seconds, run.mb, run.err[:160])
                is_batch = arguments[0] == "batch"
                codes = (0, 1, *ERRORS)
                if run.code not in codes or run.code in ERRORS and run.err.count(b"\n") != 1:
                    faults.append("no exit in order: " + shown)
                elif (archive.is_bomb() or lie == "shared" and archive.is_damaged()) and run.code not in ((1,) if is_batch else (3,)):
                    faults.append("taken: " + shown)
                elif over and run.code != 3:
                    faults.append("taken beyond the limit: " + shown)
                elif (archive.is_bomb() or over) and (run.seconds > 1 or run.mb > 100):
                    faults.append("refused late: " + shown)
                elif addresses is None and not bad and run.code != 0 and (
                        arguments[0] == "inspect" or arguments[0] == "compare" and arguments[1] == arguments[2]):
                    faults.append("refused for nothing: " + shown)
                elif run.code in ERRORS and run.out:
                    faults.append("an error with output: " + shown)
    os.remove("archive.npz")
    return runs
