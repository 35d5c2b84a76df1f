// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Drawing, folding, pan and zoom, search. Text only ever enters as textContent.
"use strict";

function start() {
  const graph = JSON.parse(document.getElementById("data").textContent);
  const view = tree(graph);
  let open = initiallyOpen(view), drawn, chosen = null, matches = [], at = -1;
  const svg = document.getElementById("graph"), details = document.getElementById("details");
  const search = document.getElementById("search"), found = document.getElementById("found");
  const frame = {x: 0, y: 0, width: 1, height: 1};
  const space = svg.namespaceURI;

  const make = (kind, attributes, parent, text) => {
    const element = document.createElementNS(space, kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const show = () => svg.setAttribute(
    "viewBox", [frame.x, frame.y, frame.width, frame.height].join(" "));
  const fit = () => {
    const ratio = svg.clientHeight / (svg.clientWidth || 1) || 1;
    // Never larger than life.
    frame.width = Math.max(drawn.width, drawn.height / ratio, svg.clientWidth);
    frame.height = frame.width * ratio;
    frame.x = (drawn.width - frame.width) / 2;
    frame.y = 0;
    show();
  };
  const zoom = (factor, fx, fy) => {
    frame.x += frame.width * fx * (1 - factor);
    frame.y += frame.height * fy * (1 - factor);
    frame.width *= factor;
    frame.height *= factor;
    show();
  };
  const center = key => {
    const box = drawn.boxes.get(key);
    frame.x = box.x + box.width / 2 - frame.width / 2;
    frame.y = box.y + LINE / 2 - frame.height / 2;
    show();
  };

  function draw(focused) {
    drawn = layout(view, open);
    svg.replaceChildren();
    const matched = new Set(matches);
    const layers = [make("g", {}, svg), make("g", {class: "edges"}, svg), make("g", {}, svg)];
    for (const edge of drawn.edges) {
      const a = drawn.boxes.get(edge.source), b = drawn.boxes.get(edge.target);
      const x1 = a.x + a.width / 2, y1 = a.y + a.height, x2 = b.x + b.width / 2, y2 = b.y;
      const bend = Math.max(RANK_GAP / 2, Math.abs(y2 - y1) / 3);
      make("path", {d: `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2 - 5}`},
        layers[1]);
      make("path", {d: `M${x2 - 4} ${y2 - 6}L${x2} ${y2}L${x2 + 4} ${y2 - 6}Z`, class: "tip"},
        layers[1]);
      const labels = [...edge.labels];
      const text = labels.slice(0, 2).join(", ") + (labels.length > 2 ? " …" : "");
      const line = make("text", {x: x2 * 0.7 + x1 * 0.3 + 4, y: y2 - 16}, layers[1], text);
      make("title", {}, line, labels.join("\n"));
    }
    for (const [key, box] of drawn.boxes) {
      const group = key[0] === "g", opened = open.has(key);
      const kind = group ? graph.groups[Number(key.slice(1))].kind : "node";
      const classes = [kind, opened ? "open" : "", matched.has(key) ? "match" : "",
        key === chosen ? "chosen" : ""].join(" ");
      const attributes = {class: classes, tabindex: 0, role: "button", "data-key": key};
      if (group) attributes["aria-expanded"] = opened;
      const element = make("g", attributes, opened ? layers[0] : layers[2]);
      make("rect", {x: box.x, y: box.y, width: box.width, height: box.height, rx: 5}, element);
      const mark = group ? (opened ? "▾ " : "▸ ") : "";
      make("text", {x: box.x + PADDING, y: box.y + 17}, element, mark + label(graph, key));
    }
    if (focused) svg.querySelector(`[data-key="${focused}"]`)?.focus({preventScroll: true});
  }

  function list(title, items) {
    if (!items.length) return;
    details.append(Object.assign(document.createElement("h3"), {textContent: title}));
    const ul = document.createElement("ul");
    for (const text of items)
      ul.append(Object.assign(document.createElement("li"), {textContent: text}));
    details.append(ul);
  }

  function tell(key) {
    chosen = key;
    details.replaceChildren(
      Object.assign(document.createElement("h2"), {textContent: label(graph, key)}));
    const index = Number(key.slice(1));
    if (key[0] === "g") {
      const group = graph.groups[index];
      list("Kind", [group.kind]);
      list("Literals", group.literals.map(([name, kind]) => `${name}: ${kind}`));
      return;
    }
    const node = graph.nodes[index];
    const constant = new Set(node.constants);
    list("Within", ancestry(view, key).slice(0, -1).map(k => label(graph, k)));
    list("Operands", node.operands.map((text, i) => constant.has(i) ? `${text} (constant)` : text));
    list("Results", node.results);
    list("Attributes", node.attributes.map(([name, value]) => `${name} = ${value}`));
    list("Source", node.source);
  }

  function choose(key) {
    tell(key);
    if (key[0] === "g") {
      // What was clicked stays where it is.
      const before = drawn.boxes.get(key);
      if (!open.delete(key)) open.add(key);
      draw(key);
      const after = drawn.boxes.get(key);
      frame.x += after.x - before.x + (after.width - before.width) / 2;
      frame.y += after.y - before.y;
      show();
    } else draw(key);
  }

  function seek() {
    const text = search.value.trim().toLowerCase();
    const keys = [...graph.groups.map((_, i) => "g" + i), ...graph.nodes.map((_, i) => "n" + i)];
    matches = text ? keys.filter(key => label(graph, key).toLowerCase().includes(text)) : [];
    at = -1;
    found.textContent = text ? `${matches.length} found` : "";
    draw();
  }
  function next(step) {
    if (!matches.length) return;
    at = (at + step + matches.length) % matches.length;
    const key = matches[at];
    for (const around of ancestry(view, key).slice(0, -1)) open.add(around);
    tell(key);
    draw();
    center(key);
    found.textContent = `${at + 1} of ${matches.length}`;
  }

  let drag = null;
  svg.addEventListener("pointerdown", event => {
    drag = {x: event.clientX, y: event.clientY, moved: false};
  });
  window.addEventListener("pointermove", event => {
    if (!drag) return;
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
    const scale = frame.width / svg.clientWidth;
    frame.x -= dx * scale;
    frame.y -= dy * scale;
    drag = {x: event.clientX, y: event.clientY, moved: true};
    show();
  });
  window.addEventListener("pointerup", event => {
    const clicked = drag && !drag.moved && event.target.closest?.("[data-key]");
    drag = null;
    if (clicked) choose(clicked.dataset.key);
  });
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    const area = svg.getBoundingClientRect();
    zoom(Math.exp(event.deltaY * 0.0015), (event.clientX - area.left) / area.width,
      (event.clientY - area.top) / area.height);
  }, {passive: false});
  svg.addEventListener("keydown", event => {
    const key = event.target.dataset.key, step = frame.width / 12;
    const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if ((event.key === "Enter" || event.key === " ") && key) choose(key);
    else if (event.key === "+" || event.key === "=") zoom(0.8, 0.5, 0.5);
    else if (event.key === "-") zoom(1.25, 0.5, 0.5);
    else if (moves[event.key]) {
      frame.x += moves[event.key][0] * step;
      frame.y += moves[event.key][1] * step;
      show();
    } else return;
    event.preventDefault();
  });
  svg.addEventListener("focusin", event => {
    if (event.target.dataset.key && event.target.matches(":focus-visible"))
      center(event.target.dataset.key);
  });
  search.addEventListener("input", seek);
  search.addEventListener("keydown", event => {
    if (event.key === "Enter") next(event.shiftKey ? -1 : 1);
  });
  document.getElementById("fit").addEventListener("click", fit);
  document.getElementById("fold").addEventListener("click", () => {
    open = initiallyOpen(view);
    draw();
    fit();
  });
  window.addEventListener("resize", fit);
  draw();
  fit();
}

if (typeof document !== "undefined") start();
