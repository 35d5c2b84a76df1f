// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The graph of a module: layout of what is unfolded, and the page around it.
"use strict";

const CHARACTER = 7, LINE = 26, GAP = 28, RANK_GAP = 46, PADDING = 16, ROW = 24;

// Boxes are keyed "g3" (group) and "n7" (node); children in the order of the program.
function tree(graph) {
  const children = new Map([["g-1", []]]);
  graph.groups.forEach((_, i) => children.set("g" + i, []));
  const parent = new Map();
  const first = new Map();
  const put = (key, group) => { children.get("g" + group).push(key); parent.set(key, "g" + group); };
  graph.nodes.forEach((node, i) => {
    put("n" + i, node.group);
    for (let g = node.group; g >= 0 && !first.has("g" + g); g = graph.groups[g].parent)
      first.set("g" + g, i);
  });
  graph.groups.forEach((group, i) => put("g" + i, group.parent));
  const place = key => key[0] === "n" ? Number(key.slice(1)) : first.get(key) ?? Infinity;
  for (const keys of children.values())
    keys.sort((a, b) => place(a) === place(b) ? 0 : place(a) - place(b));
  return {graph, children, parent};
}

function label(graph, key) {
  const index = Number(key.slice(1));
  return key[0] === "n" ? graph.nodes[index].name : graph.groups[index].name;
}

// From the outermost group to `key` itself.
function ancestry(view, key) {
  const path = [];
  for (let k = key; k !== undefined && k !== "g-1"; k = view.parent.get(k)) path.push(k);
  return path.reverse();
}

function initiallyOpen(view) {
  const open = new Set();
  view.graph.groups.forEach((_, i) => {
    if (ancestry(view, "g" + i).length <= 2) open.add("g" + i);
  });
  return open;
}

// Edges between visible boxes, those of the same ends as one; and for each open group the pairs
// of its children that edges connect.
function visibleEdges(view, open) {
  const edges = new Map(), pairs = new Map();
  const paths = view.graph.nodes.map((_, i) => ancestry(view, "n" + i));
  const ends = paths.map(path => path.find(key => !open.has(key)));
  for (const edge of view.graph.edges) {
    const source = ends[edge.source], target = ends[edge.target];
    if (source === target) continue;
    const key = source + " " + target;
    if (!edges.has(key)) edges.set(key, {source, target, labels: new Set()});
    edges.get(key).labels.add(edge.label);
    const a = paths[edge.source], b = paths[edge.target];
    let depth = 0;
    while (a[depth] === b[depth]) depth++;
    const around = depth ? a[depth - 1] : "g-1";
    if (!pairs.has(around)) pairs.set(around, new Map());
    pairs.get(around).set(a[depth] + " " + b[depth], [a[depth], b[depth]]);
  }
  return {edges: [...edges.values()], pairs};
}

// Longest-path ranks; an edge that closes a cycle (a module that is called twice) is left out.
function ranks(keys, pairs) {
  const targets = new Map(keys.map(key => [key, []]));
  for (const [a, b] of pairs) targets.get(a).push(b);
  const state = new Map(), finished = [], forward = [];
  for (const root of keys) {
    if (state.has(root)) continue;
    state.set(root, 1);
    const stack = [[root, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1];
      const next = targets.get(top[0])[top[1]++];
      if (next === undefined) { state.set(top[0], 2); finished.push(top[0]); stack.pop(); continue; }
      if (state.get(next) !== 1) forward.push([top[0], next]);
      if (!state.has(next)) { state.set(next, 1); stack.push([next, 0]); }
    }
  }
  const rank = new Map(keys.map(key => [key, 0])), after = new Map(keys.map(key => [key, []]));
  for (const [a, b] of forward) after.get(a).push(b);
  for (const a of finished.reverse())
    for (const b of after.get(a)) rank.set(b, Math.max(rank.get(b), rank.get(a) + 1));
  return {rank, forward};
}

// Rows of keys, each ordered by the mean place of its neighbours.
function rows(keys, pairs) {
  const {rank, forward} = ranks(keys, pairs);
  const layers = [];
  for (const key of keys) (layers[rank.get(key)] ??= []).push(key);
  const before = new Map(keys.map(key => [key, []])), after = new Map(keys.map(key => [key, []]));
  for (const [a, b] of forward) { before.get(b).push(a); after.get(a).push(b); }
  const place = new Map();
  const number = layer => layer.forEach((key, i) => place.set(key, (i + 0.5) / layer.length));
  layers.forEach(number);
  for (let sweep = 0; sweep < 4; sweep++) {
    const down = sweep % 2 === 0, near = down ? before : after;
    for (const layer of down ? layers : [...layers].reverse()) {
      const mean = new Map(layer.map(key => {
        const others = near.get(key);
        const sum = others.reduce((total, other) => total + place.get(other), 0);
        return [key, others.length ? sum / others.length : place.get(key)];
      }));
      layer.sort((a, b) => mean.get(a) - mean.get(b));
      number(layer);
    }
  }
  // A rank of hundreds goes over several lines.
  return layers.flatMap(layer => {
    const parts = [];
    for (let i = 0; i < layer.length; i += ROW) parts.push(layer.slice(i, i + ROW));
    return parts;
  });
}

// Boxes of all that is visible, {x, y, width, height} by key, and the edges between them.
function layout(view, open) {
  const {edges, pairs} = visibleEdges(view, open);
  const boxes = new Map();
  const size = key => {
    const width = label(view.graph, key).length * CHARACTER + 2 * PADDING + 14;
    if (!open.has(key)) return {width, height: LINE, parts: []};
    return arrange(key, width);
  };
  const arrange = (key, least) => {
    const parts = [];
    let y = LINE + 8, width = least;
    const lines = rows(view.children.get(key), [...(pairs.get(key)?.values() ?? [])]);
    const sized = lines.map(line => line.map(child => ({key: child, ...size(child)})));
    const widths = sized.map(line => line.reduce((sum, box) => sum + box.width + GAP, -GAP));
    for (const each of widths) width = Math.max(width, each + 2 * PADDING);
    sized.forEach((line, i) => {
      let x = (width - widths[i]) / 2, height = 0;
      for (const box of line) {
        parts.push({...box, x, y});
        x += box.width + GAP;
        height = Math.max(height, box.height);
      }
      y += height + RANK_GAP;
    });
    return {width, height: lines.length ? y - RANK_GAP + PADDING : LINE, parts};
  };
  const settle = (parts, x, y) => {
    for (const part of parts) {
      const {key, width, height} = part;
      boxes.set(key, {x: x + part.x, y: y + part.y, width, height});
      settle(part.parts, x + part.x, y + part.y);
    }
  };
  const all = arrange("g-1", 0);
  settle(all.parts, 0, 0);
  return {boxes, edges, width: all.width, height: all.height};
}

if (typeof module !== "undefined") module.exports = {tree, layout, initiallyOpen, ancestry};
