"""What tests that ask the program begin with: `python3 tests/NAME.py ATTN`, and ATTN_TEST_SEED in the environment."""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATTN = os.path.abspath(sys.argv[1])
SEED = int(os.environ.get("ATTN_TEST_SEED", "1"))
rng = random.Random(SEED)


def check(condition, *what):
    if not condition:
        sys.exit(f"{sys.argv[0]}: seed {SEED}: " + " ".join(map(str, what)))


def run(*words, code=0, **more):
    """Its answer. `code`: the exit code, several, or None for any."""
    done = subprocess.run([ATTN, *map(str, words)], capture_output=True, text=True, check=False, **more)
    codes = (code,) if isinstance(code, int) else code
    check(codes is None or done.returncode in codes, words, done.returncode, done.stderr)
    return done


def run_all(*tests):
    """Each in an empty folder, with the same numbers whatever others drew; they return words about what they did."""
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            rng.seed(f"{SEED} {test.__name__}")
            print(test.__name__.replace("_", " "), test() or "", flush=True)
            os.chdir("/")
