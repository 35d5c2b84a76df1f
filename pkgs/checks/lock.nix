# What pkgs/python reads out of poetry.lock: markers and the choice of wheels,
# on small cases and on the lock itself. Evaluating this is the test.
{ toolchain, lock }:
let
  inherit (builtins)
    concatStringsSep
    elem
    filter
    length
    map
    ;
  markers = import ../python/markers.nix;
  holds = markers.holds {
    python_version = "3.11";
    sys_platform = "linux";
    os_name = "posix";
  };
  rank = lock.rank "cp311";
  above = a: b: builtins.compareVersions a b > 0;
  names = python: groups: map (wheel: wheel.pname) (lock.groupWheels { inherit python; } groups);

  cases = {
    "a version is compared as one" = holds "python_version >= \"3.9\"";
    "and binds closer than or" =
      holds "os_name == \"nt\" and python_version < \"3\" or sys_platform == \"linux\"";
    "parentheses bind closest" =
      !(holds "os_name == \"nt\" and (python_version < \"3\" or sys_platform == \"linux\")");
    "single quotes are quotes" = holds "sys_platform != 'darwin'";

    "this Python's own ABI goes first" =
      above (rank "a-1-cp311-cp311-manylinux2014_x86_64.whl") (rank "a-1-cp39-abi3-manylinux_2_28_x86_64.whl");
    "a newer stable ABI goes before an older" =
      above (rank "a-1-cp310-abi3-manylinux2014_x86_64.whl") (rank "a-1-cp39-abi3-manylinux2014_x86_64.whl");
    "the stable ABI of a newer Python does not run" =
      rank "a-1-cp312-abi3-manylinux2014_x86_64.whl" == null;
    "another Python's wheel does not run" = rank "a-1-cp313-cp313-manylinux2014_x86_64.whl" == null;
    "musl does not run" = rank "a-1-cp311-cp311-musllinux_1_2_x86_64.whl" == null;
    "another machine's wheel does not run" = rank "a-1-py3-none-manylinux2014_aarch64.whl" == null;
    "a glibc newer than ours does not run" = rank "a-1-py3-none-manylinux_2_39_x86_64.whl" == null;
    "any Python, any platform runs" = rank "a-1-py2.py3-none-any.whl" != null;
    "a source archive is no wheel" = rank "a-1.tar.gz" == null;

    "each CPython has its own numpy" =
      (lock.lockedWheel "numpy" { python = "cp311"; }).version
      != (lock.lockedWheel "numpy" { python = "cp313"; }).version;
    "a group brings what its packages need" = elem "iniconfig" (names "cp311" [ "test" ]);
    "another system's packages stay out" = !(elem "colorama" (names "cp311" [ "test" ]));
    "two groups list a package once" =
      length (
        filter (name: name == "packaging") (
          names "cp311" [
            "test"
            "audit"
          ]
        )
      ) == 1;
  };
  failed = filter (name: !cases.${name}) (builtins.attrNames cases);
in
if failed == [ ] then
  toolchain.sh "lock" { } "echo ok > $out"
else
  throw "pkgs/checks/lock.nix: does not hold: ${concatStringsSep "; " failed}"
