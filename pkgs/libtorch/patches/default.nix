# The patches that ../libtorch.json names for a version of PyTorch, in its order.
version:
let
  inherit (builtins)
    compareVersions
    filter
    fromJSON
    path
    readFile
    ;
  applies =
    entry:
    compareVersions version (entry.from or "0") >= 0
    && (!(entry ? before) || compareVersions version entry.before < 0);
in
map (
  entry:
  path {
    name = entry.patch;
    path = ./. + "/${entry.patch}";
  }
) (filter applies (fromJSON (readFile ../libtorch.json)).patches)
