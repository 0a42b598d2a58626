#!/bin/sh
# Installs the libraries into a folder of their own and builds a program against them.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install build/release --prefix "$work/prefix" >/dev/null
cat >"$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.24)
project(consumer LANGUAGES CXX)
find_package(attn REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE attn::core attn::io)
EOF
cat >"$work/main.cpp" <<'EOF'
#include <cstdio>

#include "core/base/torch_random.hpp"
#include "io/text/display_width.hpp"

int main() {
    attn::TorchGenerator generator(123);
    std::printf("%.4f %zu\n", double{generator.uniform01<float>()}, attn::io::display_width("ok"));
}
EOF
cmake -G Ninja -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
[ "$("$work/build/consumer")" = "0.2961 2" ]
"$work/prefix/bin/attn" --version >/dev/null
echo "install: ok"
