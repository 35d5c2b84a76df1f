# The wheels: one for each row of the matrix and each CPython, packed from the base
# wheel that all rows share, and audited.
{
  toolchain,
  python,
  fetch,
  matrix,
  # CPython -> a folder with the base wheel in it
  baseWheel,
  # row -> CPython -> a folder with what that row's wheel holds beside it
  lazyFor,
}:
let
  inherit (builtins)
    attrNames
    attrValues
    catAttrs
    elemAt
    fromJSON
    listToAttrs
    match
    path
    readFile
    replaceStrings
    toFile
    toJSON
    ;

  auditEnv = python.groupEnv {
    name = "audit-env";
    groups = [ "audit" ];
  };

  # The programs and their data, without this file: an edit here rebuilds nothing.
  programs = path {
    name = "wheel-programs";
    path = ./.;
    filter =
      file: type:
      type == "directory" && match ".*/__pycache__" file == null || match ".*\\.(py|json)" file != null;
  };
  poetryLock = path {
    name = "poetry.lock";
    path = ../../poetry.lock;
  };
  debianPins = path {
    name = "debian.json";
    path = ../fetch/debian.json;
  };

  distribution = "torch-mlir-static";
  escaped = replaceStrings [ "-" ] [ "_" ] distribution;
  version = elemAt (match ".*__version__ = \"([^\"]+)\".*" (readFile ../../torch_mlir/version.py)) 0;
  platform = "${(fromJSON (readFile ./audit/policy.json)).profiles.${distribution}.platform}_x86_64";

  # The packages that the parts come from, each once. Those that the lock has are
  # wheels, the others Debian's.
  parts = fromJSON (readFile ./parts.json);
  named = attrNames (
    listToAttrs (
      map (name: {
        inherit name;
        value = null;
      }) (catAttrs "package" (parts.parts ++ attrValues parts.texts))
    )
  );
  # "trixie/src:pytorch" is of another suite than most.
  suiteAndName = name: match "([^/]+)/(.+)" name;
  isDebian = name: (fromJSON (readFile ../fetch/debian.json)).bookworm ? ${name};
  packageOf =
    cpython: name:
    if suiteAndName name != null then
      fetch.fetchDebPin (fetch.debianPackage (elemAt (suiteAndName name) 0) (elemAt (suiteAndName name) 1))
    else if isDebian name then
      fetch.fetchDeb "bookworm" name
    else
      python.lockedWheel name { python = cpython.tag; };

  # wheelFor row cpython -> a folder with the row's wheel in it.
  #   file       the wheel's name
  #   installed  what pythonEnv's `wheels` takes
  wheelFor =
    row: cpython:
    let
      rowVersion = "${version}+torch${replaceStrings [ "_" ] [ "." ] row.name}";
      file = "${escaped}-${rowVersion}-${cpython.tag}-${cpython.tag}-${platform}.whl";
      wheel =
        # Fails here where PyTorch never was built for this CPython.
        builtins.seq (matrix.wheel row cpython.tag) (
          toolchain.sh "wheel-torch${row.name}-${cpython.tag}"
            {
              inherit
                programs
                auditEnv
                poetryLock
                debianPins
                file
                ;
              base = baseWheel cpython;
              lazy = lazyFor row cpython;
              row = row.name;
              # Another row's pin is no reason to pack this one again.
              rows = toFile "row-${row.name}.json" (toJSON {
                ${row.name} = removeAttrs row [ "name" ];
              });
              packages = map (packageOf cpython) named;
            }
            ''
              arguments=
              for package in $packages; do arguments="$arguments --package $package"; done
              export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$programs
              $auditEnv/bin/python3 $programs/row_wheel.py $base/*.whl --row $row --matrix $rows \
                --lock $poetryLock --debian $debianPins --add $lazy -o $out $arguments
              $auditEnv/bin/python3 -m audit $out/$file
            ''
        );
    in
    wheel
    // {
      inherit file;
      installed = {
        outPath = "${wheel}/${file}";
        pname = distribution;
        version = rowVersion;
        inherit file;
      };
    };

  # A program: audit WHEEL…
  audit = toolchain.sh "audit" { inherit programs auditEnv; } ''
    mkdir -p $out/bin
    cat > $out/bin/audit <<EOF
    #!/bin/sh
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$programs exec $auditEnv/bin/python3 -m audit "\$@"
    EOF
    chmod 555 $out/bin/audit
  '';
in
{
  inherit
    wheelFor
    audit
    auditEnv
    platform
    ;

  # `nix run .#audit -- some.whl`
  auditApp = {
    type = "app";
    program = "${audit}/bin/audit";
  };
}
