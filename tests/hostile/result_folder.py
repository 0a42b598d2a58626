"""Malformed folders of a result: manifest.json and npy files."""
import json

from hostile.npy import header, npy

ENTRY = {"name": "x", "file": "x.npy", "dtype": "float32", "shape": [2, 3]}


def make_result_folders(folder):
    def made(name, manifest, why, expect="refused", array=npy()):
        place = folder.path / "folder" / name
        place.mkdir(parents=True)
        text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        (place / "manifest.json").write_bytes(text)
        if isinstance(array, str):
            (place / "x.npy").symlink_to(array)
        else:
            (place / "x.npy").write_bytes(array)
        folder.records.append({"file": f"folder/{name}", "expect": expect, "why": why})

    def listed(case, why, expect="refused", array=npy(), **changed):
        made(case, {"files": [{k: v for k, v in {**ENTRY, **changed}.items() if v is not None}]}, why, expect, array)

    listed("valid", "one array", "valid")
    listed("words", "words of fixed point", "valid", npy(header("'|i1'"), bytes([2, 4, 6, 8, 10, 12])),
           dtype="int8", store="fixed:8,1")
    whole = json.dumps({"files": [ENTRY]}).encode()
    for size in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        made(f"cut_{size}", whole[:size], "a manifest that is cut off")
    for name, manifest in (("list", [ENTRY]), ("number", 3), ("no_files", {"schema": "attn.result/1"}),
                           ("files_text", {"files": "x.npy"}), ("files_empty", {"files": []}),
                           ("files_object", {"files": {"x": "x.npy"}}), ("entry_text", {"files": ["x.npy"]}),
                           ("twice", {"files": [ENTRY, ENTRY]}), ("deep", b'{"files":' + b"[" * 100000)):
        made(name, manifest, "a manifest without a list of files, or with a wrong one")
    for name, file in (("no_file", None), ("parent", "../valid/x.npy"), ("absolute", "/dev/zero"),
                       ("other_suffix", "manifest.json"), ("missing", "gone.npy"), ("number_as_file", 7),
                       ("zero_byte", "x\0.npy"), ("itself", ".npy/../x.npy")):
        listed(name, "a file that is none of the folder's arrays", file=file)
    for name, target in (("loop", "x.npy"), ("link_device", "/dev/zero"), ("link_folder", "."), ("link_gone", "gone")):
        listed(name, "a symbolic link to no file", array=target)
    made("file_twice", {"files": [ENTRY, {**ENTRY, "name": "y"}]}, "a file of two arrays")
    listed("no_name", "an array without a name", name=None)
    listed("other_dtype", "another type than that of the file", dtype="float64")
    for name, shape in (("other_shape", [3, 2]), ("no_shape", None), ("huge_shape", [2**62, 4])):
        listed(name, "a shape that is not that of the file", shape=shape)
    for name, store in (("float32_as_words", "fixed:16,8"), ("store_65", "fixed:65,8"), ("store_junk", "junk"),
                        ("store_modes", "fixed:8,4,UP")):
        listed(name, "words of another type", store=store)
    listed("cut_array", "an array that is cut off", array=npy()[:-1])
