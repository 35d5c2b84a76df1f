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
    in
    {
      packages.${system} = {
        inherit (toolchain) busybox python311 python313 zig libstdcxx;
        env-test = python.groupEnv { groups = [ "test" ]; };
        env-build = python.groupEnv { groups = [ "build" ]; };
      };
    };
}
