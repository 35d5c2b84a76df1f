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
      libtorch = import ./pkgs/libtorch {
        inherit toolchain python fetch;
        inherit (native) nativeSource;
      };
      native = import ./pkgs/native {
        inherit toolchain python;
        libtorch = libtorch.packages.libtorch-2_6;
      };
      wheels = import ./pkgs/wheel {
        inherit
          toolchain
          python
          fetch
          matrix
          ;
        inherit (native) baseWheel;
        inherit (lazy) lazyFor;
      };
      lazy = import ./pkgs/lazy {
        inherit
          toolchain
          python
          torch
          native
          ;
        inherit (wheels) auditEnv platform;
      };

      checkRows = import ./pkgs/checks/rows.nix {
        inherit
          toolchain
          python
          matrix
          torch
          wheels
          ;
      };
      checks = {
        hermetic = import ./pkgs/checks/hermetic { inherit toolchain; };
        smoke = import ./pkgs/checks/smoke {
          inherit
            toolchain
            python
            matrix
            torch
            wheels
            ;
        };
        demo = import ./pkgs/checks/demo {
          inherit
            toolchain
            python
            torch
            wheels
            ;
        };
        tests = import ./pkgs/checks/tests.nix {
          inherit
            toolchain
            python
            torch
            wheels
            ;
        };
        units = import ./pkgs/checks/units.nix {
          inherit toolchain python wheels;
        };
        lazy = import ./pkgs/checks/lazy.nix {
          inherit
            toolchain
            python
            matrix
            checkRows
            ;
        };
        lazyVendor = import ./pkgs/checks/lazy_vendor.nix {
          inherit
            toolchain
            python
            matrix
            torch
            lazy
            wheels
            ;
        };
        archives = import ./pkgs/checks/archives.nix { inherit checkRows; };
        lock = import ./pkgs/checks/lock.nix { inherit toolchain lock; };
      };

      fuzz = import ./pkgs/fuzz {
        inherit
          toolchain
          python
          torch
          native
          ;
        libtorch = libtorch.packages.libtorch-2_6;
      };

      shells = import ./pkgs/shell {
        inherit
          system
          toolchain
          python
          matrix
          torch
          ;
      };
      apps = import ./pkgs/shell/apps.nix {
        inherit
          toolchain
          python
          torch
          wheels
          ;
      };
      elsewhere = import ./pkgs/elsewhere.nix { inherit matrix; };

      # The row that is meant where none is named.
      row = matrix.row "2_13";
      tag = name: if name == "cp311" then "" else "-${name}";
      inherit (builtins) concatMap listToAttrs;
      perRow = listToAttrs (
        concatMap (
          name:
          concatMap
            (cpython: [
              {
                name = "wheel-torch${name}${tag cpython}";
                value = wheels.wheelFor (matrix.row name) (toolchain.pythonFor cpython);
              }
              {
                name = "lazy-torch${name}${tag cpython}";
                value = lazy.lazyFor (matrix.row name) (toolchain.pythonFor cpython);
              }
            ])
            (matrix.pythons (matrix.row name))
        ) matrix.names
      );
    in
    {
      packages = elsewhere.packages // {
        ${system} = perRow // libtorch.packages // {
          default = perRow."wheel-torch${row.name}";
          inherit (wheels) audit;
          demo = checks.demo.demoFor row;
          tests = checks.tests.runnerFor row;
          import = apps.importFor row;
          fuzz = fuzz.fuzzFor row;
        };
      };
      devShells.${system} = shells.rows // {
        default = shells.rows."torch${row.name}";
      };
      checks.${system} = checks.smoke.checks // checks.archives // checks.lazy.checks // {
        inherit (checks) hermetic lock;
        units = checks.units.unitsFor row;
      };
      # Every row's checks, by name: `nix flake check` runs those of a few. And what takes minutes.
      legacyPackages.${system} = checks.smoke.all // checks.lazy.all // checks.lazyVendor;
      apps.${system} = {
        import = apps.program "torch-mlir-import" (apps.importFor row);
        demo = apps.program "demo" (checks.demo.demoFor row);
        audit = wheels.auditApp;
        tests = apps.program "run-tests" (checks.tests.runnerFor row);
      };
      formatter.${system} = import ./pkgs/shell/formatter.nix { inherit toolchain python; };
      lib = {
        inherit matrix;
        inherit (libtorch) libtorchFrom;
      };
    };
}
