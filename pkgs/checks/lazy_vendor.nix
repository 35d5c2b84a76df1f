# The vendor in examples/lazy_vendor, built out of tree with a row's wheel, that row's PyTorch, CMake
# and the toolchain's compiler, and run: tests/lazy/test_cpp_vendor.py. It compiles PyTorch's
# headers, which takes longer than a check should.
{
  toolchain,
  python,
  matrix,
  torch,
  # pkgs/lazy
  lazy,
  # pkgs/wheel
  wheels,
}:
let
  inherit (builtins) listToAttrs map path;
  cpython = toolchain.python311;
  folder =
    name: place:
    path {
      inherit name;
      path = place;
      filter = file: _: builtins.match ".*/__pycache__" file == null;
    };

  vendorFor =
    row:
    toolchain.compiling
      (python.groupEnv {
        name = "lazy-vendor-torch${row.name}-env";
        python = cpython;
        groups = [
          "test"
          "torch"
          "build"
        ];
        wheels = [ (wheels.wheelFor row cpython).installed ];
        extra = [ (torch.torchFor row cpython) ];
      })
      "lazy-vendor-torch${row.name}"
      {
        inherit (lazy) runtime newer;
        example = folder "lazy-vendor" ../../examples/lazy_vendor;
        test = ../../tests/lazy/test_cpp_vendor.py;
        # Links with the C++ runtime of PyTorch, as the lazy backend is linked.
        linker = ''
          for argument; do
            case $argument in
            -c | -E | -S | -M | -MM | -fsyntax-only | --version | -v) exec "$compiler/bin/c++" "$@" ;;
            esac
          done
          exec "$compiler/bin/cc" "$@" $libraries
        '';
      }
      ''
        set -o pipefail
        c++ -std=c++17 -O2 -fPIC -c $newer -o newer.o
        libraries="$runtime/libstdc++.so.6 $runtime/libgcc_s.so.1 $compiler/lib/compat.o $PWD/newer.o"
        {
          echo "#!$busybox/bin/sh"
          echo "compiler=$compiler libraries='$libraries'"
          echo "$linker"
        } > bin/vendor-c++
        chmod 755 bin/vendor-c++
        mkdir -p tree/examples tree/tests/lazy
        cp -r $example tree/examples/lazy_vendor
        cp $test tree/tests/lazy/test_cpp_vendor.py
        export CXX=$PWD/bin/vendor-c++ CMAKE_GENERATOR=Ninja LAZY_VENDOR_BUILD=$PWD/vendor
        export CMAKE_BUILD_PARALLEL_LEVEL=''${NIX_BUILD_CORES:-1}
        python3 -sEP -m pytest -p no:cacheprovider -q -rs --rootdir tree/tests tree/tests/lazy | tee log
        # A test that is skipped shows nothing.
        ! grep -q skipped log
        tail -n 1 log > $out
      '';
in
listToAttrs (
  map (name: {
    name = "lazy-vendor-torch${name}";
    value = vendorFor (matrix.row name);
  }) matrix.names
)
