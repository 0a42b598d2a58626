#!/bin/sh
# The packages: their contents, lintian, what pip makes of the wheel, and that the .deb leaves nothing behind.
#     sh tests/package_test.sh [PRESET]
# Builds them first. As root it installs the .deb in earnest, and purges it.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}
sh cli/package/package.sh "$preset" >/dev/null
deb=$(ls "build/$preset"/attn_*.deb)
tarball=$(ls "build/$preset"/attn-*.tar.gz)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "package: $1"
    exit 1
}

# Both hold the same files, except those that Debian adds, compresses or requires.
names() {
    sed -E -e 's,^\./?,,' -e 's,^usr/,,' -e 's,^attn-[^/]*/?,,' -e 's,\.gz$,,' |
        grep -vE '/$|^$|^share/(lintian/.*|doc/attn/changelog)$' | LC_ALL=C sort
}
dpkg-deb --fsys-tarfile "$deb" | tar -t | names >"$work/deb"
tar -tzf "$tarball" | names >"$work/tarball"
cmp "$work/deb" "$work/tarball" || fail "the .deb and the tarball hold different files"
for file in bin/attn lib/libattn_core.a lib/cmake/attn/attnConfig.cmake include/attn/core/layer/layer.hpp \
    share/attn/schema/request.json share/doc/attn/copyright share/man/man1/attn.1 \
    share/bash-completion/completions/attn; do
    grep -qx "$file" "$work/deb" || fail "$file is missing"
done

# Every file is root's and of the time of the commit; names are in order.
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
dpkg-deb --fsys-tarfile "$deb" >"$work/deb.tar"
gzip -dc "$tarball" >"$work/tarball.tar"
for archive in deb tarball; do
    TZ=UTC tar -tvf "$work/$archive.tar" --full-time --numeric-owner >"$work/list"
    awk -v time="$(date -u -d "@$time" '+%F %T')" '$2 != "0/0" || $4 " " $5 != time' "$work/list" \
        >"$work/odd"
    [ ! -s "$work/odd" ] || fail "$archive: owners or times: $(head -n 3 "$work/odd")"
done
! grep -aF "$PWD" "$work/deb.tar" "$work/tarball.tar" >/dev/null || fail "a file names the folder $PWD"

# The tarball's program needs nothing.
tar -xzf "$tarball" -C "$work"
program=$(ls "$work"/attn-*/bin/attn)
env -i "$program" causal data/journey.csv --seed 1 | "$program" compare - data/journey_result.json --ulp 2 >/dev/null

# pip installs the wheel, alone and in a virtual environment; it works there as the script, as a module, and with
# --target, and it is the tarball's program.
wheel=$(ls "build/$preset"/attn-*.whl)
sh cli/install.sh python3-venv
if python3 -m venv "$work/venv" >"$work/log" 2>&1; then
    pip="$work/venv/bin/python -m pip install --no-index --quiet --disable-pip-version-check"
    $pip "$wheel" || fail "pip refuses the wheel"
    $pip --target "$work/target" "$wheel" || fail "pip install --target refuses the wheel"
    cmp "$program" "$work/venv/bin/attn" || fail "the wheel holds another program than the tarball"
    for command in "$work/venv/bin/attn" "$work/venv/bin/python -m attn" \
        "env PYTHONPATH=$work/target python3 -m attn"; do
        $command causal data/journey.csv --seed 1 | $command compare - data/journey_result.json --ulp 2 >/dev/null ||
            fail "$command does not answer"
    done
    "$work/venv/bin/python" -m pip uninstall --yes --quiet attn
    [ ! -e "$work/venv/bin/attn" ] || fail "pip uninstall leaves the program"
else
    echo "package: the wheel is not tried: $(tail -n 1 "$work/log")"
fi

sh cli/install.sh lintian
lintian --allow-root --fail-on error,warning "$deb" || fail "lintian"

# Installed and purged, it leaves of all its paths those that were there before.
if [ "$(id -u)" = 0 ] && ! dpkg -s attn >/dev/null 2>&1; then
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -e 's,^\.,,' -e 's,/$,,' | grep . >"$work/paths"
    echo /var/lib/dpkg/info/attn.list >>"$work/paths"
    there() { while read -r path; do [ ! -e "$path" ] || echo "$path"; done <"$work/paths"; }
    there >"$work/before"
    dpkg -i "$deb" >/dev/null
    [ "$(command -v attn)" = /usr/bin/attn ] || fail "attn is not found"
    attn self --example journey >/dev/null
    [ -z "$(dpkg --verify attn)" ] || fail "files are not as they were packed"
    dpkg --purge attn >/dev/null
    there | cmp "$work/before" - || fail "files are left"
fi
echo "package: ok"
