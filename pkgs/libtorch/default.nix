# The selective libtorch: what the importer needs of PyTorch, as a static library.
#
# A version is a source tree. Debian's source packages bring two; libtorchFrom takes any
# other. Selecting compiles many files to find the few, so its result for the two lies
# beside this file as data (selection-VERSION.txt), written by `.#libtorch-VERSION.report`;
# for a tree of the user's own it is worked out in a derivation.
{
  toolchain,
  python,
  fetch,
  # The folder that is searched for the importer's sources: pkgs/native's.
  nativeSource,
}:
let
  inherit (builtins)
    listToAttrs
    match
    path
    pathExists
    replaceStrings
    ;

  environment = python.groupEnv {
    name = "libtorch-env";
    groups = [
      "build"
      "libtorch"
    ];
  };
  fmt = toolchain.unpackDebs "fmt" "bookworm" [ "libfmt-dev" ];

  # The folders of PyTorch's source that are read; the rest is documentation, tests, Python.
  parts = [
    "LICENSE"
    "NOTICE"
    "version.txt"
    "aten/src"
    "build_variables.bzl"
    "c10"
    "caffe2/core"
    "caffe2/serialize"
    "cmake/Codegen.cmake"
    "third_party"
    "tools"
    "torch/csrc"
    "torch/custom_class.h"
    "torch/custom_class_detail.h"
    "torch/library.h"
    "torchgen"
  ];
  debianSource =
    suite:
    let
      pin = fetch.debianPackage suite "src:pytorch";
    in
    toolchain.sh "pytorch-source-${suite}"
      {
        archive = fetch.fetchDebPin pin;
        inherit parts;
      }
      ''
        mkdir unpacked $out
        tar -xJf $archive -C unpacked
        cd unpacked/*
        for part in $parts; do
          mkdir -p $out/$(dirname $part)
          mv $part $out/$part
        done
      '';

  programs =
    name: pattern:
    path {
      inherit name;
      path = ./.;
      filter = file: type: match ".*/__pycache__" file == null && match pattern (baseNameOf file) != null;
    };
  generator = programs "libtorch-generator" "generate\\.py";
  buildFiles = programs "libtorch-build-files" "(operators|generate)\\.py|libtorch\\.json|CMakeLists\\.txt|.*\\.cmake\\.in|stubs|.*\\.(cpp|h)";
  selector = programs "libtorch-selector" "(selection|operators|own_builds|generate)\\.py|libtorch\\.json|stubs|.*\\.(cpp|h)";

  patchesFor = import ./patches;

  # A source tree with our patches: what is compiled, and what the generator and the importer's own
  # files read. Why there are any: archives are strangers', and libtorch believes them.
  patched =
    version: src:
    toolchain.sh "libtorch-${version}-source"
      {
        inherit src version;
        patches = patchesFor version;
      }
      ''
        cp -r $src $out
        chmod -R u+w $out
        cd $out
        for patch in $patches; do
          name=''${patch#*-}
          if ! patch -p1 < $patch; then
            echo "pkgs/libtorch/patches/$name does not apply to PyTorch $version." >&2
            echo "pkgs/libtorch/libtorch.json tells what it is for. Rewrite it for this source" >&2
            echo "and add it there with the versions it is for ('from', 'before')." >&2
            exit 1
          fi
        done
      '';

  llvm = "$env/lib/python3.11/site-packages/llvm/bin";
  # The library that LLVM's tools share looks for the C library's in its own folder alone.
  forLlvm = "export LD_LIBRARY_PATH=${toolchain.python311}/lib/x86_64-linux-gnu";

  libtorchFrom =
    {
      src,
      version,
      selection ? null,
    }@given:
    let
      src = patched version given.src;
      generated =
        toolchain.sh "libtorch-${version}-generated"
          {
            inherit src generator;
            env = environment;
          }
          ''
            export PYTHONDONTWRITEBYTECODE=1 HOME=$PWD
            $env/bin/python3 $generator/generate.py $src -o $out
          '';

      selected =
        toolchain.compiling environment "libtorch-${version}-selection"
          {
            inherit
              src
              generated
              selector
              fmt
              nativeSource
              ;
            inherit (toolchain) zig;
          }
          ''
            ${forLlvm}
            packages=$env/lib/python3.11/site-packages
            mkdir $out include
            $env/bin/python3 $nativeSource/torch_mlir/operators/emit_rows_cpp.py \
              --libtorch ${version} -o include/RowSchemas.inc
            $env/bin/python3 $nativeSource/torch_mlir/operators/emit_results_cpp.py \
              -o include/ResultRules.inc
            $env/bin/python3 $selector/selection.py $src $generated \
              $nativeSource/torch_mlir/csrc/torchscript/*.cpp $selector/stubs/*.cpp \
              $packages/nanobind/src/nb_combined.cpp \
              --compiler $compiler/bin/c++ --linker "$zig/bin/zig ld.lld" --runtime $compiler/lib/compat.o \
              --nm ${llvm}/llvm-nm --cxxfilt ${llvm}/llvm-cxxfilt \
              -I $fmt/usr/include -I $PWD/include -I $nativeSource/torch_mlir/csrc \
              -I $packages/mlir/include -I $packages/llvm/include -I $packages/nanobind/include \
              -I $packages/nanobind/ext/robin_map/include \
              -I ${toolchain.python311}/include/python3.11 -D MLIR_PYTHON_PACKAGE_PREFIX=torch_mlir. \
              -j ''${NIX_BUILD_CORES:-1} --work $PWD/work -v \
              --report $out/report.txt -o $out/selection.txt
          '';

      # With further flags for the compiler, e.g. a fuzzer's instrumentation.
      libraryWith =
        flags:
        let
          # What instrumentation calls is linked in where the library is used: CMake's trial isn't.
          unlinked = if flags == "" then "" else " -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY";
        in
        toolchain.compiling environment "libtorch-${version}"
          {
            inherit
              src
              generated
              buildFiles
              fmt
              flags
              ;
            selection = if selection == null then "${selected}/selection.txt" else selection;
          }
          ''
            ${forLlvm}
            cmake -S $buildFiles -B build -G Ninja \
              -DCMAKE_BUILD_TYPE=None \
              -DCMAKE_C_COMPILER=$compiler/bin/cc -DCMAKE_CXX_COMPILER=$compiler/bin/c++ \
              -DCMAKE_INSTALL_PREFIX=$out \
              -DTORCH_SOURCE=$src -DTORCH_GENERATED=$generated -DTORCH_SELECTION=$selection \
              -DFMT_INCLUDE_DIR=$fmt/usr/include \
              -DCMAKE_CXX_FLAGS="$flags"${unlinked} \
              -DSELECTIVE_LIBTORCH_NM=${llvm}/llvm-nm \
              -DPython3_EXECUTABLE=$env/bin/python3
            ninja -C build -j ''${NIX_BUILD_CORES:-1}
            cmake --install build
          '';
    in
    libraryWith ""
    // {
      inherit version generated src;
      withFlags = libraryWith;
      selection = selected;
      report = selected;
    };

  versions = [
    {
      version = "2.6.0";
      suite = "trixie";
    }
    {
      version = "1.13.1";
      suite = "bookworm";
    }
  ];
  nameOf = version: replaceStrings [ "." ] [ "_" ] (builtins.elemAt (match "([0-9]+\\.[0-9]+).*" version) 0);
  fromDebian =
    { version, suite }:
    let
      file = ./. + "/selection-${version}.txt";
    in
    {
      name = "libtorch-${nameOf version}";
      value = libtorchFrom {
        inherit version;
        src = debianSource suite;
        selection = if pathExists file then path { name = "selection.txt"; path = file; } else null;
      };
    };
in
{
  inherit libtorchFrom;
  packages = listToAttrs (map fromDebian versions);
}
