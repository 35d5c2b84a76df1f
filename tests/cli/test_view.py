# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch-mlir view`: one page that holds everything, and a layout without overlaps."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from torch_mlir.cli import main_view
from torch_mlir.cli.errors import CommandError
from torch_mlir.cli.view import page

HOSTILE = "</script><b>&\"'"
MLIR = """
func.func @main(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32> {
  %0 = torch.aten.relu %x : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,3],f32>
      loc("Net"("a: Block"("a.b: </script><b>&"("net.py":1:0))))
  %1 = torch.aten.tanh %0 : !torch.vtensor<[2,3],f32> -> !torch.vtensor<[2,3],f32>
      loc("Net"("c: Block"("net.py":2:0)))
  %2 = torch.aten.add.Tensor %1, %0, %i : !torch.vtensor<[2,3],f32>,
      !torch.vtensor<[2,3],f32>, !torch.int -> !torch.vtensor<[2,3],f32>
      loc("Net"("a: Block"("net.py":3:0)))
  return %2 : !torch.vtensor<[2,3],f32>
}
""".replace("  %0 =", "  %i = torch.constant.int 1\n  %0 =", 1)

LAYOUT = """
const {tree, layout, initiallyOpen} = require(process.argv[1]);
const view = tree(JSON.parse(require("fs").readFileSync(0)));
const all = new Set(view.graph.groups.map((_, i) => "g" + i));
const result = [initiallyOpen(view), all].map(open => {
  const {boxes, edges} = layout(view, open);
  return {boxes: Object.fromEntries(boxes),
    edges: edges.map(edge => [edge.source, edge.target, [...edge.labels]])};
});
console.log(JSON.stringify(result));
"""


class Page(HTMLParser):
    """The tags of a page, and the contents of what has an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: list[str] = []
        self.data = ""
        self._in_data = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "input"):
            self.opened.append(tag)
        self._in_data = ("id", "data") in attrs

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        if self._in_data:
            self.data += data


def view(*arguments):
    parser = argparse.ArgumentParser()
    main_view.configure_parser(parser.add_subparsers())
    parsed = parser.parse_args(["view", *map(str, arguments)])
    parsed.execute(parsed)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    (folder / "model.mlir").write_text(MLIR)
    view(folder / "model.mlir", "-o", folder / "graph.html")
    return (folder / "graph.html").read_text()


def test_the_page_is_well_formed_and_escaped(text):
    parsed = Page(text)
    assert parsed.opened == []
    assert parsed.tags.count("script") == 2
    assert "b" not in parsed.tags
    names = [group["name"] for group in json.loads(parsed.data)["groups"]]
    assert names == ["main", "Net", "a: Block", "a.b: </script><b>&", "c: Block"]


def test_the_page_needs_nothing_else(text):
    assert not re.search(r"https?:|//[a-z]+\.|\bsrc=|\bhref=|@import|url\(|fetch\(", text)


def test_the_title_is_escaped():
    parsed = Page(page.html_page(page.Graph(), HOSTILE))
    assert parsed.opened == []
    assert parsed.tags.count("script") == 2


def test_a_model_of_pytorch(tmp_path):
    pytest.importorskip("torch.export", reason="needs PyTorch 2.1 or newer")
    out = tmp_path / "graph.html"
    view("torch.nn:Linear(3, 4)", "--input", "2x3xf32", "-o", out)
    data = json.loads(Page(out.read_text()).data)
    literals = [literal for group in data["groups"] for literal in group["literals"]]
    assert literals == [["weight", "4x3xf32"], ["bias", "4xf32"]]


def test_what_is_no_mlir_is_refused_and_nothing_written(tmp_path):
    (tmp_path / "x.mlir").write_text("func.func {")
    with pytest.raises(CommandError, match="not MLIR that is known here"):
        view(tmp_path / "x.mlir", "-o", tmp_path / "graph.html")
    assert not (tmp_path / "graph.html").exists()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js to run the layout")
def test_layout(text):
    script = Path(page.__file__).parent / "page.js"
    result = subprocess.run(
        ["node", "-e", LAYOUT, str(script)],
        input=Page(text).data,
        capture_output=True,
        text=True,
        check=True,
    )
    folded, unfolded = json.loads(result.stdout)
    # Blocks a and c feed each other: the layout bears the cycle.
    assert folded["boxes"].keys() == {"g0", "g1", "g2", "g4", "n0", "n4"}
    assert folded["edges"] == [
        ["n0", "g2", ["2x3xf32"]],
        ["g2", "g4", ["2x3xf32"]],
        ["g4", "g2", ["2x3xf32"]],
        ["g2", "n4", ["2x3xf32"]],
    ]
    boxes = unfolded["boxes"]
    parents = {"n1": "g3", "n2": "g4", "n3": "g2", "g3": "g2", "g2": "g1", "g4": "g1", "g1": "g0"}
    for child, parent in parents.items():
        assert _inside(boxes[child], boxes[parent])
    for one, other in (("g2", "g4"), ("g3", "n3"), ("n0", "g1"), ("g1", "n4")):
        assert not _overlap(boxes[one], boxes[other])


def _inside(a, b):
    return (
        b["x"] <= a["x"]
        and a["x"] + a["width"] <= b["x"] + b["width"]
        and b["y"] <= a["y"]
        and a["y"] + a["height"] <= b["y"] + b["height"]
    )


def _overlap(a, b):
    return (
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    )
