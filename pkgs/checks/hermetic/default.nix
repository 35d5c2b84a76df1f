# What a derivation can see: nothing of the host. It looks for a host's folders
# and its shell, and the build fails on the first that is there.
{ toolchain }:
toolchain.sh "hermetic" { } ''
  for path in /usr /bin/sh /lib /lib64 /opt /root /home /var /etc/apt /etc/os-release; do
    if [ -e "$path" ]; then
      echo "hermetic: $path of the host is visible in a build." >&2
      echo "Pass --option sandbox relaxed --option sandbox-fallback false; Debian 13's Nix" >&2
      echo "also puts a shell into every sandbox, unless told --option sandbox-paths \"\"." >&2
      exit 1
    fi
  done
  if grep : /proc/net/dev | grep -v '^ *lo:'; then
    echo "hermetic: a build has a network, see above." >&2
    exit 1
  fi
  echo ok > $out
''
