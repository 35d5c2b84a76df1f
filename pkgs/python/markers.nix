# Environment markers (PEP 508), as far as poetry.lock uses them:
#   python_version >= "3.12" and (sys_platform == "linux" or os_name == "nt")
# `holds { python_version = "3.11"; … } marker` is whether the marker holds there.
let
  isString = text: builtins.match "\".*\"|'.*'" text != null;
  unquote = text: builtins.substring 1 (builtins.stringLength text - 2) text;

  # A list of words: parentheses, operators, names and quoted strings.
  words =
    marker:
    let
      pieces = builtins.split "(\\(|\\)|==|!=|>=|<=|~=|>|<|\"[^\"]*\"|'[^']*'|[a-z_]+)" marker;
    in
    map builtins.head (builtins.filter builtins.isList pieces);

  drop = n: list: builtins.genList (i: builtins.elemAt list (i + n)) (builtins.length list - n);
  next = list: if list == [ ] then null else builtins.head list;

  # Only versions are compared by order; everything else is equal or not.
  compare =
    operator: left: right:
    let
      order = builtins.compareVersions left right;
    in
    {
      "==" = left == right;
      "!=" = left != right;
      ">=" = order >= 0;
      "<=" = order <= 0;
      ">" = order > 0;
      "<" = order < 0;
    }
    .${operator} or (throw "markers.nix: operator '${operator}' of poetry.lock is not known");

  value =
    environment: word:
    if isString word then
      unquote word
    else
      environment.${word} or (throw "markers.nix: variable '${word}' of poetry.lock is not known");

  # Each parser takes words and gives { result; rest; }.
  expression =
    environment: list:
    let
      left = conjunction environment list;
      right = expression environment (drop 1 left.rest);
    in
    if next left.rest == "or" then
      {
        result = left.result || right.result;
        rest = right.rest;
      }
    else
      left;

  conjunction =
    environment: list:
    let
      left = term environment list;
      right = conjunction environment (drop 1 left.rest);
    in
    if next left.rest == "and" then
      {
        result = left.result && right.result;
        rest = right.rest;
      }
    else
      left;

  term =
    environment: list:
    let
      inner = expression environment (drop 1 list);
    in
    if next list == "(" then
      {
        inherit (inner) result;
        rest = drop 1 inner.rest; # ")"
      }
    else
      {
        result = compare (builtins.elemAt list 1) (value environment (builtins.elemAt list 0)) (
          value environment (builtins.elemAt list 2)
        );
        rest = drop 3 list;
      };
in
{
  holds =
    environment: marker:
    let
      parsed = expression environment (words marker);
    in
    if parsed.rest == [ ] then
      parsed.result
    else
      throw "markers.nix: cannot read '${marker}' of poetry.lock";
}
