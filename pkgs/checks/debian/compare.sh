#!/bin/sh
# Builds a row's wheels here and in a bare Debian, and compares their sha256.
#
#   compare.sh [--suite SUITE] [--root DIR] ROW…
#
# SUITE is trixie unless given. DIR keeps the Debian, and the store in it, for
# another time; without it both go in the end. Both sides build HEAD. The exit
# code is 1 if a wheel differs.
set -eu

prog=${0##*/}
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../../.." && pwd)

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

misuse() {
  printf '%s: %s\n' "$prog" "$*" >&2
  usage >&2
  exit 2
}

suite=trixie
root=
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help)
    usage
    exit 0
    ;;
  --suite | --root)
    [ $# -ge 2 ] || misuse "$1 wants a value"
    case $1 in --suite) suite=$2 ;; *) root=$2 ;; esac
    shift 2
    ;;
  -*) misuse "unknown option $1" ;;
  *) break ;;
  esac
done
[ $# -gt 0 ] || misuse "which row?"
[ "$(id -u)" = 0 ] || {
  printf '%s: mounts and namespaces need root: run it with sudo\n' "$prog" >&2
  exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
: "${root:=$scratch/root}"

# The working tree may hold what HEAD does not.
git clone --quiet --no-hardlinks "$repo" "$scratch/clone"
"$scratch/clone/bootstrap" build --out "$scratch/here" "$@" >/dev/null
[ -d "$root" ] || "$here/root.sh" make "$suite" "$root"
"$here/root.sh" run "$root" ./bootstrap build "$@" >"$scratch/there"

(cd "$scratch/here" && sha256sum -- *.whl) | sort -k 2 >"$scratch/host"
sort -k 2 "$scratch/there" >"$scratch/debian"
describe() { sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$1/etc/os-release"; }
printf '%s, %s\n' "$(describe /)" "$(nix --version)"
cat "$scratch/host"
printf '%s, Nix of that release\n' "$(describe "$root")"
cat "$scratch/debian"
if cmp -s "$scratch/host" "$scratch/debian"; then
  echo "equal"
else
  echo "different"
  exit 1
fi
