#!/bin/sh
# Cross-builds for arm64 on Debian and runs the core's tests and the benchmark's under emulation.
set -eu
cd "$(dirname "$0")/.."

if ! { command -v aarch64-linux-gnu-g++ && command -v qemu-aarch64-static; } >/dev/null; then
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    $as_root apt-get update -qq >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        g++-aarch64-linux-gnu qemu-user-static cmake ninja-build libcli11-dev nlohmann-json3-dev \
        libxtensor-dev doctest-dev >&2
fi

# Libraries are headers only, so this machine's serve; the static link needs no arm64 system.
build=build/arm64
mkdir -p "$build"
if ! {
    cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DATTN_WERROR=ON \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static \
        -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static \
        -DCMAKE_PREFIX_PATH="/usr/lib/$(uname -m)-linux-gnu/cmake" &&
        cmake --build "$build" --target core_test attn_bench
} >"$build.log" 2>&1; then
    cat "$build.log" >&2
    exit 1
fi
ctest --test-dir "$build" -R "^(core_test|bench):" --output-on-failure --no-tests=error \
    -j "$(nproc 2>/dev/null || echo 2)" "$@"
