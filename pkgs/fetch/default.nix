# Fixed-output fetchers: the only derivations that run programs of the host.
#
# `sandbox = relaxed` (or false) lets them; all others need nothing from outside.
# What they may fetch is settled by a sha256, so the host's pip and apt decide
# where a file comes from, never which one.
{ system }:
let
  program = builtins.path {
    name = "fetch.py";
    path = ./fetch.py;
  };

  # Nix sets those that are unset to "", which OpenSSL and pip would take at
  # their word: the builder drops the empty ones.
  environment = [
    "TORCH_MLIR_PYTHON"
    "TORCH_MLIR_INDEX"
    "TORCH_MLIR_MIRROR"
    "PIP_INDEX_URL"
    "PIP_CONFIG_FILE"
    "PIP_CERT"
    "PIP_CLIENT_CERT"
    "PIP_PROXY"
    "PIP_TRUSTED_HOST"
    "PIP_TIMEOUT"
    "PIP_DEFAULT_TIMEOUT"
    "APT_CONFIG"
    "HOME"
    "XDG_CONFIG_HOME"
    "SSL_CERT_FILE"
    "SSL_CERT_DIR"
    "REQUESTS_CA_BUNDLE"
    "CURL_CA_BUNDLE"
    "http_proxy"
    "https_proxy"
    "all_proxy"
    "no_proxy"
    "HTTP_PROXY"
    "HTTPS_PROXY"
    "ALL_PROXY"
    "NO_PROXY"
  ];

  # A Python with pip, if there is one: it knows an index.
  builder = ''
    for name in $impureEnvVars; do
      eval "[ -n \"\''${$name}\" ] || unset $name"
    done
    export PATH=/usr/local/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
    python=''${TORCH_MLIR_PYTHON:-}
    if [ -z "$python" ]; then
      for candidate in /usr/bin/python3 /usr/local/bin/python3; do
        if [ -x "$candidate" ]; then
          if "$candidate" -c 'import pip' 2>/dev/null; then python=$candidate; break; fi
          python=''${python:-$candidate}
        fi
      done
    fi
    if [ -z "$python" ] || ! [ -x "$(command -v "$python")" ]; then
      echo "fetch: no Python 3 on this host to fetch $name with''${python:+: there is no program $python}.
    Install python3 and python3-pip, or set
      TORCH_MLIR_PYTHON  a Python 3.9 or newer that runs the fetchers
      TORCH_MLIR_INDEX  address of a simple package index, if that Python has no pip
      TORCH_MLIR_MIRROR  address of a Debian mirror, if this host has no apt
      (with a Nix daemon, set them in the daemon's environment)" >&2
      exit 1
    fi
    "$python" ${program} --out "$out" "$@"
  '';

  fetch =
    {
      name,
      sha256,
      data,
      regenerate,
      arguments,
      output ? { },
    }:
    derivation (
      {
        inherit system name;
        builder = "/bin/sh";
        args = [
          "-euc"
          builder
          "fetch"
          "--sha256"
          sha256
          "--data"
          data
          "--regenerate"
          regenerate
        ]
        ++ arguments;
        impureEnvVars = environment;
        __noChroot = true;
        outputHashMode = "flat";
        outputHashAlgo = "sha256";
        outputHash = sha256;
        # A cache can't know these paths, and may not answer.
        allowSubstitutes = false;
        preferLocalBuild = true;
      }
      // output
    );

  packages = builtins.fromJSON (builtins.readFile ./debian.json);
  debianPin = {
    data = "pkgs/fetch/debian.json";
    regenerate = "pkgs/fetch/regenerate.py";
  };

  # "libc6_2.36-9+deb12u14_amd64.deb": pool paths escape what file names forbid,
  # store paths forbid a little more.
  storeName = path: builtins.replaceStrings [ "~" "%" ] [ "-" "-" ] (baseNameOf path);

  # suite -> package name -> { path, sha256, version }
  debianPackage =
    suite: package:
    packages.${suite}.${package}
      or (throw "pkgs/fetch/debian.json pins no package '${package}' of ${suite}; add it with pkgs/fetch/regenerate.py --add ${suite} ${package}");
in
rec {
  # { name = "cmake"; version; file = "cmake-….whl"; sha256 = hex; } -> the wheel
  fetchWheel =
    {
      name,
      file,
      sha256,
      version ? null,
      data ? "poetry.lock",
      regenerate ? "pkgs/lock/regenerate.py",
    }:
    fetch {
      name = file;
      inherit sha256 data regenerate;
      arguments = [
        "wheel"
        name
        file
      ];
    };

  # { path = "pool/…"; sha256 = hex; } -> the .deb
  fetchDebPin =
    { path, sha256, ... }:
    fetch (
      debianPin
      // {
        name = storeName path;
        inherit sha256;
        arguments = [
          "deb"
          path
        ];
      }
    );

  # "bookworm" "libc6" -> the .deb
  fetchDeb = suite: package: fetchDebPin (debianPackage suite package);

  # The version of a pinned Debian package, for bills of materials.
  inherit debianPackage;

  # The one program that no program of ours can unpack: a static busybox.
  busyboxProgram =
    let
      pin = debianPackage "bookworm" "busybox-static";
    in
    fetch (
      debianPin
      // {
        name = "busybox-program";
        inherit (pin) sha256;
        arguments = [
          "program"
          pin.path
          pin.program.member
        ];
        output = {
          outputHashMode = "recursive";
          outputHash = pin.program.narHash;
        };
      }
    );
}
