# Formats Python and C++ sources in place: those of the source tree around the
# current folder, or the files and folders that are named.
set -eu
if [ $# = 0 ] || [ "$*" = . ]; then
  while [ ! -e pyproject.toml ]; do
    [ "$PWD" != / ] || { echo "fmt: no pyproject.toml here or above; enter the source tree" >&2; exit 1; }
    cd ..
  done
  set -- .
fi
find "$@" \( -name build -o -name dist -o -name out -o -name '.?*' \) -prune -o \
  -name '*.py' -type f -print0 | xargs -0 -r "$env/bin/ruff" format
find "$@" \( -name build -o -name dist -o -name out -o -name '.?*' \) -prune -o \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.c' \) -type f -print0 |
  xargs -0 -r "$env/bin/clang-format" -i
