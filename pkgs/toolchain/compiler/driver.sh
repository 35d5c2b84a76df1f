# A compiler driver around zig's, see default.nix, which sets the variables used here.
link=1
for argument; do
  case $argument in
  -c | -E | -S | -M | -MM | -fsyntax-only | --version | -v) link= ;;
  esac
done
# Deterministic, and what a release is made of: no sanitizer unless asked for.
set -- -target x86_64-linux-gnu.2.28 -fno-sanitize=undefined -Wno-unused-command-line-argument "$@"
[ "$mode" = c++ ] || exec "$zig" cc "$@"

# libstdc++'s assertions name their file: not where it lay when this was built.
set -- "-fmacro-prefix-map=$libstdcxx/include/=" "$@"
# The shim goes first; zig takes -isystem after folders of its own, hence -I.
headers=$libstdcxx/include/c++/12
triple=$libstdcxx/include/x86_64-linux-gnu/c++/12
set -- -nostdinc++ "-I$shim" "-I$headers" "-I$triple" "-I$headers/backward" "$@"
if [ -n "$link" ]; then
  # Debian's libgcc_eh.a wants a newer glibc than 2.28; zig's libunwind does not.
  set -- "$@" -nostdlib++ "$libstdcxx/lib/gcc/x86_64-linux-gnu/12/libstdc++.a" -lunwind "$lib/compat.o"
fi
exec "$zig" c++ "$@"
