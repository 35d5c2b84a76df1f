# Builds the package in the build folder of a development shell: configures it the
# first time, then compiles what changed. Arguments go to the build tool.
set -eu
: "${TORCH_MLIR_SOURCE:?enter the development shell in the source tree}"
: "${TORCH_MLIR_BUILD:?enter the development shell in the source tree}"
if [ ! -e "$TORCH_MLIR_BUILD/build.ninja" ]; then
  cmake -S "$TORCH_MLIR_SOURCE" -B "$TORCH_MLIR_BUILD" -G Ninja \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER="$compiler/bin/cc" \
    -DCMAKE_CXX_COMPILER="$compiler/bin/c++" \
    -DTORCH_MLIR_TOOLCHAIN_LINKS_RUNTIME=ON \
    -DPython3_EXECUTABLE="$python" >&2
fi
exec ninja -C "$TORCH_MLIR_BUILD" "$@"
