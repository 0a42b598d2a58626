"""Answers requests.ndjson on a Dask cluster: python3 dask_shards.py [SCHEDULER]. Each shard is a task
and a process; one whose worker dies runs again and goes on where it stopped."""

import itertools
import subprocess
import sys

from distributed import Client, LocalCluster

SHARDS = 4


def answer(shard):
    part = f"part.{shard}"
    command = ["attn", "batch", "requests.ndjson", "--shard", f"{shard}/{SHARDS}", "--jobs", "1"]
    done = subprocess.run([*command, "--resume", part])
    if done.returncode not in (0, 1):  # 1: some records failed, and their lines say why
        raise RuntimeError(f"attn ended with {done.returncode}")
    return part


def main():
    scheduler = sys.argv[1] if len(sys.argv) > 1 else LocalCluster(n_workers=2, threads_per_worker=1)
    with Client(scheduler) as client:
        parts = client.gather(client.map(answer, range(1, SHARDS + 1), pure=False))
    with open("results.ndjson", "wb") as results:
        files = [open(part, "rb") for part in parts]
        for lines in itertools.zip_longest(*files, fillvalue=b""):
            results.writelines(lines)


if __name__ == "__main__":
    main()
