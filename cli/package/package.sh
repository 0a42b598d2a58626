#!/bin/sh
# Builds the packages of this commit: sh cli/package/package.sh [PRESET]. They lie in build/PRESET; the
# .deb only where there is dpkg, the wheel only where there is Python and the program is static.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
preset=${1:-release}
sh cli/build.sh "$preset"
cd "build/$preset"
rm -f attn_*.deb attn-*.tar.gz attn-*.whl
kinds=TGZ
if command -v dpkg >/dev/null; then kinds="DEB;TGZ"; fi
cpack -G "$kinds" >package.log 2>&1 || {
    cat package.log >&2
    exit 1
}
rm -r _CPack_Packages
for file in "$PWD"/attn_*.deb "$PWD"/attn-*.tar.gz; do
    [ ! -e "$file" ] || echo "$file"
done
if command -v python3 >/dev/null && grep -qx 'ATTN_STATIC:[A-Z]*=ON' CMakeCache.txt; then
    python3 "$root/cli/package/wheel.py" attn-*.tar.gz
fi
