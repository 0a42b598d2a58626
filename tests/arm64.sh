#!/bin/sh
# Cross-builds for arm64 on Debian and runs, under emulation, the tests of what depends on the
# processor, and the benchmarks' checks.
set -eu
cd "$(dirname "$0")/.."

sh cli/install.sh g++-aarch64-linux-gnu qemu-user-static cmake ninja-build libcli11-dev \
    nlohmann-json3-dev doctest-dev

build=build/arm64
mkdir -p "$build"

# Most libraries are headers only, so this machine's serve, and the static link needs no arm64
# system. The archives of zlib, libpng, FriBidi, PCRE2 and utf8proc are taken out of their arm64
# packages, which are not installed.
arm64_usr=$PWD/$build/packages/usr
if [ ! -e "$arm64_usr/lib/aarch64-linux-gnu/libutf8proc.a" ]; then
    (
        cd "$build"
        apt="apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State=$PWD/apt"
        mkdir -p apt/lists/partial
        $apt update >&2
        $apt download zlib1g-dev libpng-dev libfribidi-dev libpcre2-dev libutf8proc-dev >&2
        dpkg-deb -x zlib1g-dev_*_arm64.deb packages
        dpkg-deb -x libpng-dev_*_arm64.deb packages
        dpkg-deb -x libfribidi-dev_*_arm64.deb packages
        dpkg-deb -x libpcre2-dev_*_arm64.deb packages
        dpkg-deb -x libutf8proc-dev_*_arm64.deb packages
    )
fi
# The kernels are optimised as in a release; the rest less, which halves the time of the build.
if ! {
    cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DATTN_LEVEL=-O1 -DATTN_WERROR=ON -DCMAKE_UNITY_BUILD=ON \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static \
        -DZLIB_LIBRARY="$arm64_usr/lib/aarch64-linux-gnu/libz.a" \
        -DZLIB_INCLUDE_DIR="$arm64_usr/include" \
        -DPNG_LIBRARY="$arm64_usr/lib/aarch64-linux-gnu/libpng.a" \
        -DFRIBIDI_LIBRARY="$arm64_usr/lib/aarch64-linux-gnu/libfribidi.a" \
        -DPCRE2_LIBRARY="$arm64_usr/lib/aarch64-linux-gnu/libpcre2-8.a" \
        -DUTF8PROC_LIBRARY="$arm64_usr/lib/aarch64-linux-gnu/libutf8proc.a" \
        -DPNG_PNG_INCLUDE_DIR="$arm64_usr/include" \
        -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64-static \
        -DCMAKE_PREFIX_PATH="/usr/lib/$(uname -m)-linux-gnu/cmake" &&
        cmake --build "$build" --target core_test io_test attn_bench attn_text_bench
} >"$build.log" 2>&1; then
    cat "$build.log" >&2
    exit 1
fi
# Emulation is slow: only kernels, exponentials, draws, the text of numbers and one layer.
kernels='kernels|linear attention|projection|multiply|sums by key|strips|torch_exp|exponentials|torch bits'
draws='(the|a|two|only the)? *(generator|low 32 bits|tensor|skips|Mt19937|MCG31|seed|rand|normals|bernoulli|skip|jump|far positions|keep bits|an element is kept|dropout|nn\.Linear)'
numbers='decimals|shortest|precision is|JSON numbers|loose numbers|low precision'
layer='wrapper: each head'
ctest --test-dir "$build" -R "^bench:|^(core|io)_test: *($kernels|$draws|$numbers|$layer)" \
    --output-on-failure --no-tests=error -j "$(nproc 2>/dev/null || echo 2)" "$@"
