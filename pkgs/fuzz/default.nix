# bin/fuzz: archives that libFuzzer changes, guided by what they reach in the importer and in its
# libtorch, both instrumented. A crash, a hang and memory beyond bounds are findings, and end it.
{
  toolchain,
  python,
  torch,
  # pkgs/libtorch's library, and pkgs/native
  libtorch,
  native,
}:
let
  cpython = toolchain.python311;
  flags = "-fsanitize-coverage=inline-8bit-counters,pc-table,trace-cmp";
  # Clang's own libFuzzer; zig brings none.
  runtime = toolchain.unpackDebs "libfuzzer" "bookworm" [ "libclang-rt-14-dev" ];
  environment = python.groupEnv {
    name = "fuzz-env";
    groups = [ "build" ];
  };

  archives =
    toolchain.compiling environment "fuzz-archives"
      {
        libtorch = libtorch.withFlags flags;
        inherit runtime flags;
        src = native.nativeSource;
        compiled = native.compiled cpython;
        build = builtins.path {
          name = "fuzz-build-files";
          path = ./CMakeLists.txt;
        };
      }
      ''
        packages=$env/lib/python3.11/site-packages
        mkdir build-files tables
        cp $build build-files/CMakeLists.txt
        $env/bin/python3 $src/torch_mlir/operators/emit_rows_cpp.py \
          --libtorch ${libtorch.version} -o tables/RowSchemas.inc
        $env/bin/python3 $src/torch_mlir/operators/emit_results_cpp.py -o tables/ResultRules.inc
        cmake -S build-files -B build -G Ninja \
          -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER=$compiler/bin/c++ -DCMAKE_CXX_FLAGS="$flags" \
          -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
          -DCMAKE_INSTALL_PREFIX=$out \
          -DSelectiveLibtorch_DIR=$libtorch/lib/cmake/SelectiveLibtorch \
          -DCSRC=$src/torch_mlir/csrc -DTABLES_DIR=$PWD/tables \
          -DMLIR_INCLUDE_DIRS="$packages/mlir/include;$packages/llvm/include" \
          -DC_INTERFACE=$compiled/torch_mlir/_mlir_libs/libTorchMLIRAggregateCAPI.so \
          -DLIBFUZZER=$runtime/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.fuzzer-x86_64.a
        ninja -C build -j ''${NIX_BUILD_CORES:-1}
        cmake --install build
      '';
in
{
  # With seeds that the PyTorch of a row writes.
  fuzzFor =
    row:
    let
      seeds =
        toolchain.sh "fuzz-seeds-torch${row.name}"
          {
            environment = python.groupEnv {
              name = "fuzz-seeds-torch${row.name}-env";
              groups = [ "torch" ];
              extra = [ (torch.torchFor row cpython) ];
            };
            make = builtins.path {
              name = "make_seeds.py";
              path = ../../torch_mlir/csrc/torchscript/fuzz/make_seeds.py;
            };
          }
          ''
            export HOME=$PWD PYTHONDONTWRITEBYTECODE=1
            # TorchScript reads the source of what it scripts, by its module's name.
            cp $make make_seeds.py
            $environment/bin/python3 -sE make_seeds.py $out
          '';
    in
    toolchain.sh "fuzz"
      {
        inherit archives seeds;
        inherit (toolchain) busybox;
        launcher = builtins.path {
          name = "fuzz.sh";
          path = ./fuzz.sh;
        };
      }
      ''
        mkdir -p $out/bin
        {
          echo "#!$busybox/bin/sh"
          echo "program=$archives/libexec/fuzz-archives seeds=$seeds PATH=$busybox/bin"
          cat $launcher
        } > $out/bin/fuzz
        chmod 555 $out/bin/fuzz
      '';
}
