#!/bin/sh
# Installs those of these Debian packages that are missing: sh cli/install.sh PACKAGE...
# Elsewhere it does nothing: then they must be there already.
set -eu
if ! { command -v dpkg-query && command -v apt-get; } >/dev/null; then exit 0; fi
missing=
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing" >&2
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
wait_for_lock="-o DPkg::Lock::Timeout=300"
# shellcheck disable=SC2086  # lists of words
{
    $as_root apt-get $wait_for_lock update -qq >&2
    $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get $wait_for_lock install -y -qq --no-install-recommends $missing >&2
}
