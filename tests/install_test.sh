#!/bin/sh
# Installs into a folder of its own, and builds a program against what is there: with every header.
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
for file in bin/attn share/attn/schema/result.json share/doc/attn/copyright; do
    [ -s "$work/prefix/$file" ] || { echo "install: no $file" && exit 1; }
done
(cd "$work/prefix/include/attn" && find . -name '*.hpp' | LC_ALL=C sort) |
    sed 's,^\./\(.*\),#include "\1",' >"$work/main.cpp"
cat >>"$work/main.cpp" <<'EOF'

#include <cstdio>

int main() {
    attn::TorchGenerator generator(123);
    std::printf("%.4f %zu\n", double{generator.uniform01<float>()}, attn::io::display_width("ok"));
}
EOF
cmake -G Ninja -S "$work" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
[ "$("$work/build/consumer")" = "0.2961 2" ]
"$work/prefix/bin/attn" --version >/dev/null
"$work/prefix/bin/attn" self --example journey | "$work/prefix/bin/attn" inspect >/dev/null
echo "install: ok"
