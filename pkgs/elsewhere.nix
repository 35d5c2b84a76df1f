# The packages of systems that we don't build for: each fails with what to do.
#
# A derivation rather than a `throw`, since `nix flake show` evaluates every
# system's packages.
{ matrix }:
let
  systems = [
    "aarch64-linux"
    "aarch64-darwin"
    "x86_64-darwin"
  ];
  refusal =
    system:
    derivation {
      inherit system;
      name = "torch-mlir-static-needs-x86_64-linux";
      builder = "/bin/sh";
      args = [
        "-c"
        ''
          echo "torch-mlir-static: wheels are built for and on x86_64-linux, and this is ${system}." >&2
          echo "Build on a Linux x86_64 machine, or in an x86_64 Debian container or virtual machine." >&2
          exit 1
        ''
      ];
      # Its shell is the host's.
      __noChroot = true;
      allowSubstitutes = false;
    };
  names = [ "default" ] ++ map (name: "wheel-torch${name}") matrix.names;
  forAll =
    list: value:
    builtins.listToAttrs (
      map (name: {
        inherit name;
        value = value name;
      }) list
    );
in
{
  packages = forAll systems (system: forAll names (_: refusal system));
}
