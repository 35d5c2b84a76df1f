# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A graph as one HTML file that needs nothing else: scripts, style and data are in it."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path

from .graph import Graph

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<label>Search <input id="search" type="search"></label>
<span id="found" role="status"></span>
<button id="fit" type="button">Fit</button>
<button id="fold" type="button">Fold</button>
</header>
<main>
<svg id="graph" role="group" aria-label="graph" tabindex="0"></svg>
<aside id="details" aria-live="polite"></aside>
</main>
<script id="data" type="application/json">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


def html_page(graph: Graph, title: str) -> str:
    """The page that shows `graph`."""
    folder = Path(__file__).parent
    return _PAGE.format(
        title=html.escape(title),
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script="".join(
            (folder / name).read_text(encoding="utf-8") for name in ("page.js", "interaction.js")
        ),
        data=_json(graph),
    )


def _json(graph: Graph) -> str:
    """JSON without any character that HTML would see as markup."""
    text = json.dumps(dataclasses.asdict(graph), separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
