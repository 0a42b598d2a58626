"""Files of arrays by the standard library alone, read and written by their specifications."""
import json
import pathlib
import struct


def npy_head(shape, descr="<f4"):
    """The beginning of an npy file in C order."""
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d, " % n for n in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()


def safetensors(tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}."""
    header, data = {} if metadata is None else {"__metadata__": metadata}, []
    end = 0
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(content)]}
        data.append(content)
        end += len(content)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(data)


def read_safetensors(path):
    """{name: (dtype, shape, bytes)} in the header's order, the metadata, and the bytes before the data."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {name: (row["dtype"], row["shape"], data[start + row["data_offsets"][0]:start + row["data_offsets"][1]])
               for name, row in header.items()}
    return tensors, metadata, data[:start]
