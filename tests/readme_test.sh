#!/bin/sh
# README's commands, in README's order, in a fresh clone: sh tests/readme_test.sh [BUILD]. What they print is
# tests/cli/manual_test.cpp's concern.
# BUILD (build/release) was made from the same files. Its objects take the place of compiling again; all else is made
# in the clone.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q . "$work/attn"
git diff --binary HEAD | git -C "$work/attn" apply --allow-empty
cat >"$work/compiler" <<EOF
#!/bin/sh
before=
for word; do
    case \$before\$word in
    */version.cpp.o) ;; # names the commit
    -o*.o) [ ! -e "$PWD/${1:-build/release}/\$word" ] || exec cp "$PWD/${1:-build/release}/\$word" "\$word" ;;
    esac
    before=
    [ "\$word" != -o ] || before=-o
done
exec "\$@"
EOF
chmod +x "$work/compiler"
# A command continues after a backslash at the end of its line.
awk '/^```/ { is_code = !is_code && /^```(sh)?$/; is_output = 0; next }
     is_code && sub(/^\$ /, "") { is_output = 1; print; continues = /\\$/; next }
     is_code && (continues || !is_output) { print; continues = /\\$/ }' README.md >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 8 ] || { echo "readme: few commands: $(cat "$work/commands")" && exit 1; }
cat >>"$work/commands" <<'EOF'
[ "$(command -v attn)" = "$HOME/.local/bin/attn" ]
attn --version | grep -q "^commit: $(git rev-parse --short=12 HEAD)"
for file in share/man/man1/attn.1 share/bash-completion/completions/attn; do [ -s "$HOME/.local/$file" ]; done
EOF
cd "$work/attn"
if ! HOME=$work/home CMAKE_CXX_COMPILER_LAUNCHER=$work/compiler sh -eux "$work/commands" >"$work/log" 2>&1 </dev/null; then
    tail -n 20 "$work/log"
    echo "readme: the last command failed"
    exit 1
fi
echo "readme: ok"
