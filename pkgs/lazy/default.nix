# The backend of PyTorch's lazy tensors, for each row: an extension module that is compiled with the
# row's PyTorch and linked with its libraries.
{
  toolchain,
  python,
  torch,
  # pkgs/native
  native,
  # Python with auditwheel's policies
  auditEnv,
  # "manylinux_2_28_x86_64", what the module runs on
  platform,
}:
let
  inherit (builtins) path;
  file =
    name:
    path {
      inherit name;
      path = ./. + "/${name}";
    };
  # The interpreter that every row's PyTorch has a wheel for.
  oldest = toolchain.python311;

  # What the module is linked with in place of the toolchain's static C++ runtime: exceptions,
  # strings and type information go to and from PyTorch's libraries, so the runtime is theirs, in
  # the version that the platform promises.
  runtime =
    toolchain.sh "lazy-runtime"
      {
        inherit auditEnv platform;
        libraries = toolchain.unpackDebs "c++-runtime" "bookworm" [
          "libstdc++6"
          "libgcc-s1"
        ];
        program = file "link_runtime.py";
      }
      ''
        export PYTHONDONTWRITEBYTECODE=1
        mkdir $out
        for name in libstdc++.so.6 libgcc_s.so.1; do
          $auditEnv/bin/python3 $program $(find $libraries -name $name) \
            --platform $platform -o $out/$name
        done
      '';

  # <out>/torch_mlir: what a row's wheel holds beside what all wheels do.
  #
  # PyTorch's C++ interface is the same for every CPython, CPython's is not: a module for another
  # is compiled with that one's headers, and with the oldest's PyTorch.
  lazyFor =
    row: cpython:
    let
      pytorch = torch.torchFor row oldest;
      runs = cpython.tag == oldest.tag;
    in
    toolchain.compiling
      (python.groupEnv {
        name = "lazy-torch${row.name}-${cpython.tag}-env";
        python = cpython;
        groups = [ "build" ] ++ (if runs then [ "torch" ] else [ ]);
        extra = if runs then [ pytorch ] else [ ];
      })
      "lazy-torch${row.name}-${cpython.tag}"
      (
        {
          inherit pytorch runtime;
          newer = file "newer.cpp";
          src = native.lazySource;
          package = native.compiled cpython;
          site = "lib/python${oldest.version}/site-packages";
        }
        // (if runs then { } else { stubs = lazyFor row oldest; })
      )
      (
        ''
          cmake -S $src/torch_mlir/csrc/lazy -B build -G Ninja \
            -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_C_COMPILER=$compiler/bin/cc \
            -DCMAKE_CXX_COMPILER=$compiler/bin/c++ \
            "-DTORCH_MLIR_CXX_RUNTIME=$runtime/libstdc++.so.6;$runtime/libgcc_s.so.1;$compiler/lib/compat.o" \
            -DTORCH_MLIR_CXX_RUNTIME_SOURCE=$newer \
            -DTORCH_MLIR_TORCH_DIR=$pytorch/$site/torch \
            -DTORCH_MLIR_PACKAGE=$package/torch_mlir \
            -DPython3_EXECUTABLE=$env/bin/python3
          ninja -C build -j ''${NIX_BUILD_CORES:-1}
          cmake --install build --prefix $out
        ''
        + (
          if runs then
            # Importing the module to write its stub also shows that all its symbols are there.
            ''
              cp -rL $package package
              chmod -R u+w package
              libs=package/torch_mlir/_mlir_libs
              cp $out/torch_mlir/_mlir_libs/_lazy_backend.so $libs/
              echo _lazy_backend.so _lazy_backend >> $libs/shared_objects.txt
              $env/bin/python3 $src/cmake/write_stubs.py package/torch_mlir --module _lazy_backend \
                --output $out/torch_mlir/_mlir_libs
            ''
          else
            ''
              cp $stubs/torch_mlir/_mlir_libs/_lazy_backend.pyi $out/torch_mlir/_mlir_libs/
            ''
        )
      );
in
{
  inherit lazyFor runtime;
  # C++ for what that runtime lacks.
  newer = file "newer.cpp";
}
