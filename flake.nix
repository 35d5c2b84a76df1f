{
  description = "A PyTorch to MLIR importer in one wheel that links no libtorch";

  outputs =
    { self }:
    let
      system = "x86_64-linux";

      fetch = import ./pkgs/fetch { inherit system; };
      lock = import ./pkgs/python/lock.nix { inherit fetch; };
      toolchain = import ./pkgs/toolchain {
        inherit system fetch;
        lockedWheel = name: lock.lockedWheel name { };
      };
      python = import ./pkgs/python { inherit toolchain lock; };
      matrix = import ./pkgs/matrix { };
      torch = import ./pkgs/torch {
        inherit
          toolchain
          fetch
          lock
          matrix
          ;
      };
      native = import ./pkgs/native { inherit toolchain python; };
    in
    {
      packages.${system} = {
        inherit (toolchain)
          busybox
          python311
          python313
          zig
          libstdcxx
          compiler
          ;
        env-test = python.groupEnv { groups = [ "test" ]; };
        env-build = python.groupEnv { groups = [ "build" ]; };
        compiled = native.compiled toolchain.python311;
        base-wheel = native.baseWheel toolchain.python311;
        torch2_13 = torch.torchFor (matrix.row "2_13") toolchain.python311;
      };
      checks.${system} = {
        hermetic = import ./pkgs/checks/hermetic { inherit toolchain; };
      };
      lib = {
        inherit matrix;
        sources = { inherit (native) nativeSource packageSource; };
      };
    };
}
