#!/bin/sh
# A bare Debian in a folder, and commands run inside it from a clean clone.
#
#   root.sh make SUITE DIR        debootstrap SUITE (bookworm, trixie, …) into DIR
#   root.sh run DIR COMMAND…      clone this repository's HEAD into DIR, run COMMAND in the clone
#
# Nix makes its sandbox with pivot_root, which the kernel refuses in a plain
# chroot: the root of a chroot is no mount point. So a command gets a mount and
# a PID namespace of its own, with DIR as a true root. The network is the
# host's, and so are the mirrors, the package index and the certificates.
set -eu

prog=${0##*/}
repo=$(cd "$(dirname "$0")/../../.." && pwd)
# Where the clone lies inside the root.
clone=/home/build/torch_mlir

usage() { sed -n '2,5s/^# \{0,1\}//p' "$0"; }

fail() {
  printf '%s: %s\n' "$prog" "$*" >&2
  exit 1
}

need() {
  for tool; do
    command -v "$tool" >/dev/null || fail "$tool is missing. On Debian: apt-get install debootstrap util-linux git"
  done
}

# URI SUITE COMPONENT of every package list that the host's apt reads.
# (The $(…) are apt's own.)
# shellcheck disable=SC2016
host_targets() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages'
}

# What the host's apt has been told about reaching its mirrors.
host_acquire() {
  apt-config dump Acquire | grep -iE '^Acquire::([a-z]+::Proxy|Check-Valid-Until|Check-Date|Retries)' || true
}

make_root() {
  suite=$1 root=$2
  need debootstrap apt-get apt-config
  [ ! -e "$root" ] || fail "$root is there already. Remove it to start afresh, or use it with: $prog run $root COMMAND"
  targets=$(host_targets)
  mirror=$(printf '%s\n' "$targets" | awk '$2 !~ /-security$/ { print $1; exit }')
  security=$(printf '%s\n' "$targets" | awk '$2 ~ /-security$/ { print $1; exit }')
  [ -n "$mirror" ] || fail "apt names no mirror: see /etc/apt/sources.list.d"

  mkdir -p "$(dirname "$root")"
  new=$root.new.$$
  trap 'rm -rf "$new"' EXIT
  trap 'exit 130' INT TERM
  debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$new" "$mirror" >"$root.log" 2>&1 ||
    fail "debootstrap failed; the end of $root.log:
$(tail -n 5 "$root.log")"
  {
    echo "deb $mirror $suite main"
    [ -z "$security" ] || echo "deb $security $suite-security main"
  } >"$new/etc/apt/sources.list"
  host_acquire >"$new/etc/apt/apt.conf.d/90host"
  mv "$new" "$root"
  rm -f "$root.log"
  trap - EXIT INT TERM
}

# Files of the host's that decide how the network is reached.
copy_host_settings() {
  root=$1
  cat /etc/resolv.conf >"$root/etc/resolv.conf"
  cat /etc/hosts >"$root/etc/hosts"
  if [ -d /usr/local/share/ca-certificates ]; then
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp -R /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  fi
}

# The environment of a command: nothing of the host's but proxies and the package index.
environment() {
  echo "HOME=/root"
  echo "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
  echo "LANG=C.UTF-8"
  [ -z "${TERM:-}" ] || echo "TERM=$TERM"
  index=$(python3 -m pip config get global.index-url 2>/dev/null) || index=${PIP_INDEX_URL:-}
  [ -z "$index" ] || echo "PIP_INDEX_URL=$index"
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY CI; do
    eval "value=\${$name:-}"
    [ -z "$value" ] || echo "$name=$value"
  done
}

run_in_root() {
  [ -x "$1/bin/sh" ] || fail "$1 is no Debian root. Make one with: $prog make SUITE $1"
  root=$(cd "$1" && pwd)
  shift
  need unshare git mount pivot_root
  copy_host_settings "$root"
  rm -rf "${root:?}$clone"
  mkdir -p "$root$(dirname "$clone")"
  git clone --quiet --no-hardlinks "$repo" "$root$clone"
  environment >"$root/run-environment"

  # $0 = root, $1 = clone, the rest = command. mount and pivot_root are the
  # host's; after the pivot only what lies in the root is used.
  # shellcheck disable=SC2016
  unshare --mount --pid --ipc --fork --kill-child -- sh -euc '
    root=$0
    mount --make-rprivate /
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t sysfs -o ro sysfs sys
    mount -t tmpfs -o mode=755 dev dev
    for node in null zero full random urandom tty; do
      : >"dev/$node"
      mount --bind "/dev/$node" "dev/$node"
    done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
    mount -t tmpfs -o mode=1777 shm dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    ln -s /proc/self/fd/0 dev/stdin
    ln -s /proc/self/fd/1 dev/stdout
    ln -s /proc/self/fd/2 dev/stderr
    mkdir -p .old
    pivot_root . .old
    cd /
    umount -l /.old
    rmdir /.old
    [ ! -d /usr/local/share/ca-certificates ] || update-ca-certificates >/dev/null 2>&1
    set -- "$@"
    cd "$1"
    shift
    # One NAME=VALUE a line; values hold no newline.
    while IFS= read -r line; do set -- "$line" "$@"; done </run-environment
    rm /run-environment
    exec env -i "$@"
  ' "$root" "$clone" "$@"
}

case ${1:-} in
-h | --help) usage ;;
make)
  [ $# -eq 3 ] || { usage >&2; exit 2; }
  [ "$(id -u)" = 0 ] || fail "debootstrap and mounts need root: run it with sudo"
  make_root "$2" "$3"
  ;;
run)
  [ $# -ge 3 ] || { usage >&2; exit 2; }
  [ "$(id -u)" = 0 ] || fail "mounts and namespaces need root: run it with sudo"
  shift
  run_in_root "$@"
  ;;
*)
  usage >&2
  exit 2
  ;;
esac
