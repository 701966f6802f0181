// Draw the byte map: files, parameters and memory at one step of a recorded load. Used live (anywidget's `render`) and
// by pages without a kernel (`mount`). No library, no network; colours come from the page's theme.

const ROLE = {
  q: "#0072B2", k: "#E69F00", v: "#009E73", o: "#CC79A7", gate: "#56B4E9", up: "#F0E442", down: "#D55E00",
  vocab: "#8C8C8C", norm: "#C8C8C8", router: "#C8C8C8",
};
const DARK_TEXT = new Set(["k", "gate", "up", "norm", "router", "o", "vocab"]);
const CSS = `
.byte-map { --ink: var(--color-foreground-primary, var(--jp-ui-font-color1, #1a1a1a));
  --soft: var(--color-foreground-secondary, var(--jp-ui-font-color2, #555));
  --rule: var(--color-foreground-border, var(--jp-border-color1, #999));
  --ground: var(--color-background-primary, var(--jp-layout-color1, #fff));
  color: var(--ink); font: 14px/1.45 var(--jp-ui-font-family, sans-serif); max-width: 1000px; padding: 2px; }
.byte-map svg { display: block; width: 100%; font-size: 12px; overflow: visible; }
.byte-map svg text { fill: var(--ink); }
.byte-map .bar { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 6px 0; }
.byte-map button { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--rule);
  border-radius: 4px; padding: 3px 12px; cursor: pointer; }
.byte-map button:focus-visible, .byte-map input:focus-visible { outline: 3px solid #0072B2; outline-offset: 1px; }
.byte-map input[type=range] { flex: 1 1 160px; min-width: 120px; accent-color: #0072B2; }
.byte-map fieldset { border: 0; padding: 0; margin: 4px 0; }
.byte-map .run { display: grid; grid-template-columns: 190px 1fr 190px; gap: 8px; align-items: center; padding: 2px 4px;
  border-left: 4px solid transparent; }
.byte-map .run.chosen { border-left-color: #0072B2; font-weight: 600; }
.byte-map .say { min-height: 2.9em; margin: 4px 0; font-size: 15px; }
.byte-map h4 { margin: 0; font-size: 16px; } .byte-map p { margin: 2px 0; }
@media (max-width: 640px) { .byte-map .run { grid-template-columns: 1fr; } }`;

function html(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function svg(parent, tag, attributes, text, tip) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  if (tip) svg(made, "title", {}, tip);
  parent.append(made);
  return made;
}

const mib = (bytes) => bytes === 0 ? "0 MiB" : bytes >= 10 * 2 ** 20 ? `${Math.round(bytes / 2 ** 20).toLocaleString("en")} MiB`
  : `${(bytes / 2 ** 20).toFixed(bytes >= 2 ** 20 ? 1 : bytes >= 2 ** 14 ? 2 : 3)} MiB`;
const wide = (text) => 7 * text.length;
const layerOf = (name) => (name.match(/layers\.(\d+)\./) || [])[1];
const short = (name) => name.split(".").filter((word) => !["model", "layers", "self_attn", "mlp", "weight"].includes(word)
  && !/^\d+$/.test(word)).join(".");

function roundTicks(top) {
  const target = top / 2 ** 20 / 5, power = 10 ** Math.floor(Math.log10(target));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= target) * 2 ** 20;
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step);
}

// What is where after `position` steps.
function stateAt(trace, run, position) {
  const state = { live: new Map(), read: new Set(), there: new Set(), out: new Set(), own: 0, mapped: 0, peak: 0 };
  for (const step of run.steps.slice(0, position)) {
    for (const [id, label, bytes, mapped] of step.add || []) {
      state.live.set(id, { label, bytes, mapped });
      state[mapped ? "mapped" : "own"] += bytes;
    }
    for (const id of step.drop || []) {
      const gone = state.live.get(id);
      if (gone) state[gone.mapped ? "mapped" : "own"] -= gone.bytes;
      state.live.delete(id);
    }
    state.peak = Math.max(state.peak, state.own);
    if (step.kind === "read" || step.kind === "place") state.read.add(step.key);
    if (step.kind === "place") state.there.add(step.key);
    if (step.kind === "yield" || step.kind === "copy") {
      for (const key of trace.params[step.name] || []) { state.there.add(key); state.read.add(key); }
      if (step.kind === "yield") state.out.add(step.name);
    }
  }
  return state;
}

// Who in memory waits for what, in words.
function heldFor(trace, state) {
  const groups = new Map();
  for (const { label, mapped } of state.live.values()) {
    if (mapped) continue;
    const name = trace.param_of[label];
    if (name && trace.params[name].length > 1) groups.set(name, [...(groups.get(name) || []), short(label)]);
  }
  const said = [...groups].map(([name, parts]) => {
    const layer = layerOf(name), some = parts.length > 3 ? `${parts.length} parts` : parts.join(", ");
    return `${some} for ${short(name)}${layer ? ` of layer ${layer}` : ""}`;
  });
  return said.length ? `Held: ${said.slice(0, 3).join("; ")}${said.length > 3 ? `; and parts of ${said.length - 3} more` : ""}.`
    : "No parts are waiting.";
}

class ByteMap {
  constructor(place, trace, ask) {
    Object.assign(this, { trace, ask, chosen: 0, position: 0, timer: null });
    this.root = html("section", { class: "byte-map", "aria-label": trace.title, "data-lm-suppress-shortcuts": "true" });
    place.replaceChildren(html("style", {}, CSS), this.root);
    this.build();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.root);
    this.draw();
  }

  get run() { return this.trace.runs[this.chosen]; }

  build() {
    const button = (label, act, hint) => html("button", { type: "button", onclick: act, title: hint }, label);
    this.play = button("▶ Play", () => this.toggle(), "Play or pause");
    this.slider = html("input", { type: "range", min: 0, "aria-label": "Step", oninput: () => this.goTo(+this.slider.value) });
    this.count = html("span", {});
    this.say = html("p", { class: "say", role: "status" });
    this.runs = html("fieldset", {}, html("legend", { style: "padding:0" }, "Own memory of each loader, step by step (one scale):"));
    this.picture = html("div", {});
    this.words = html("pre", { style: "white-space:pre-wrap;font:inherit;color:inherit;background:none" });
    const controls = html("div", { class: "bar" }, this.play, button("◀ Back", () => this.stepBy(-1), "One step back"),
      button("Step ▶", () => this.stepBy(1), "One step on"),
      button("Merge ▶", () => this.toNext("merge"), "On to the next moment at which parts are joined"), this.slider, this.count);
    if (this.ask) controls.append(button("Run again", () => this.ask(this.chosen), "Run this loader again in the kernel, and watch"));
    this.root.append(html("h4", {}, this.trace.title), html("p", {}, this.trace.note || ""), this.runs, controls, this.say,
      this.picture, html("details", {}, html("summary", {}, "In words"), this.words));
    this.listRuns();
  }

  listRuns() {
    this.runs.querySelectorAll("label").forEach((row) => row.remove());
    this.charts = this.trace.runs.map((run, index) => {
      const choose = html("input", { type: "radio", name: `run-${this.trace.id}`, onchange: () => this.choose(index) });
      choose.checked = index === this.chosen;
      const chart = html("div", {});
      this.runs.append(html("label", { class: "run" }, html("span", {}, choose, ` ${run.title}`), chart,
        html("span", {}, run.error ? "stopped with an error" : `peak ${mib(run.peak)}, ${(run.peak / this.trace.model_bytes).toFixed(2)} × the model`)));
      return chart;
    });
  }

  choose(index) { this.pause(); this.chosen = index; this.position = 0; this.draw(); }
  pause() { clearInterval(this.timer); this.timer = null; this.play.textContent = "▶ Play"; }

  toggle() {
    if (this.timer) { this.pause(); this.draw(); return; }
    if (this.position >= this.run.steps.length) this.position = 0;
    this.play.textContent = "❚❚ Pause";
    const pace = Math.min(450, Math.max(80, 30000 / this.run.steps.length));
    this.timer = setInterval(() => {
      if (!this.root.isConnected) return this.pause();
      if (this.position >= this.run.steps.length) { this.pause(); this.draw(); } else this.stepBy(1, true);
    }, pace);
  }

  goTo(position) { this.pause(); this.position = position; this.draw(); }

  toNext(kind) {
    const found = this.run.steps.findIndex((step, index) => index >= this.position && step.kind === kind);
    if (found < 0) this.say.textContent = "This loader joins nothing from here on: it reads each part straight into its place.";
    else this.goTo(found + 1);
  }

  stepBy(by, playing = false) {
    if (!playing) this.pause();
    this.position = Math.max(0, Math.min(this.run.steps.length, this.position + by));
    this.draw();
    if (by === 1) this.fly(this.run.steps[this.position - 1]);
  }

  draw() {
    const { run, trace } = this, steps = run.steps, step = steps[this.position - 1];
    const state = stateAt(trace, run, this.position);
    this.slider.max = steps.length; this.slider.value = this.position;
    this.count.textContent = `step ${this.position} of ${steps.length}`;
    this.say.setAttribute("aria-live", this.timer ? "off" : "polite");
    this.say.textContent = `${step ? step.say : "Nothing is read yet. Press Play, or go step by step."} `
      + (run.error && this.position === steps.length ? run.error : heldFor(trace, state));
    const sentence = `${run.title}, step ${this.position} of ${steps.length}: own memory ${mib(state.own)}, at most ${mib(state.peak)} so far; `
      + `${state.read.size} of ${Object.keys(trace.param_of).length} tensors read, ${state.out.size} parameters handed out.`;
    this.words.textContent = `${trace.words}\n${sentence} ${this.say.textContent}`;
    const width = Math.max(300, this.root.clientWidth - 4);
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", sentence);
    this.places = {};
    let y = this.drawFiles(picture, state, step, width);
    y = this.drawMemory(picture, state, step, width, y + 26);
    picture.setAttribute("height", y);
    picture.style.height = `${y}px`;
    this.picture.replaceChildren(picture);
    this.charts.forEach((chart, index) => this.drawRun(chart, index));
  }

  // Files on the left, parameters on the right, both on one scale: as long as their bytes.
  drawFiles(picture, state, step, width) {
    const { trace } = this, narrow = width < 640, column = narrow ? width : (width - 40) / 2, left = 64;
    const rows = trace.rows, longest = Math.max(...trace.files.map((file) => file.bytes), ...rows.map((row) => row.bytes));
    const scale = (column - left - 6) / longest;
    const cell = (key, x, y, bytes, filled, strong, store) => {
      const role = trace.role_of[key], w = Math.max(1, bytes * scale - 1);
      svg(picture, "rect", { x, y, width: w, height: 18, fill: filled ? ROLE[role] : "none",
        style: `stroke:${strong ? "var(--ink)" : "var(--rule)"};stroke-width:${strong ? 2.5 : 0.7}` }, undefined, `${key}, ${mib(bytes)}`);
      if (w > wide(role) + 4) svg(picture, "text", { x: x + w / 2, y: y + 13.5, "text-anchor": "middle",
        style: filled ? `fill:${DARK_TEXT.has(role) ? "#000" : "#fff"}` : "" }, role);
      (this.places[store] ||= {})[key] = { x, y, w };
    };
    svg(picture, "text", { x: 0, y: 14, "font-weight": 600 }, "Files: filled once read");
    let y = 24;
    for (const file of trace.files) {
      svg(picture, "text", { x: 0, y: y + 13.5 }, file.name);
      let x = left;
      for (const key of file.keys) {
        cell(key, x, y, trace.bytes_of[key], state.read.has(key), step && step.key === key, "file");
        x += trace.bytes_of[key] * scale;
      }
      y += 26;
    }
    let bottom = y, offset = 0;
    if (narrow) { offset = 0; y += 22; } else { offset = column + 40; y = 24; }
    svg(picture, "text", { x: offset, y: y - 10, "font-weight": 600 }, "Parameters: filled once complete in place");
    for (const row of rows) {
      svg(picture, "text", { x: offset, y: y + 13.5 }, row.name);
      let x = offset + left;
      for (const name of row.params) {
        for (const key of trace.params[name]) {
          cell(key, x, y, trace.bytes_of[key], state.there.has(key), step && step.name === name && step.kind !== "read", "param");
          x += trace.bytes_of[key] * scale;
        }
        if (state.out.has(name)) svg(picture, "line", { x1: this.places.param[trace.params[name][0]].x, x2: x - 1, y1: y + 21, y2: y + 21,
          style: "stroke:var(--ink);stroke-width:2" }, undefined, `${name} is handed out`);
      }
      y += 26;
    }
    svg(picture, "text", { x: offset + left, y: y + 8, style: "fill:var(--soft)" }, "underlined: handed out");
    return Math.max(bottom, y + 10);
  }

  // One bar: what this process owns, piece by piece; under it what is only mapped.
  drawMemory(picture, state, step, width, y) {
    const { trace } = this, top = 1.05 * Math.max(trace.model_bytes, ...trace.runs.map((run) => run.peak)), scale = (width - 8) / top;
    svg(picture, "text", { x: 0, y, "font-weight": 600 }, `Memory: ${mib(state.own)} owned, at most ${mib(state.peak)} so far`);
    y += 10;
    svg(picture, "rect", { x: 0, y, width: width - 8, height: 34, fill: "none", style: "stroke:var(--rule)" });
    let x = 0;
    for (const { label, bytes, mapped } of state.live.values()) {
      if (mapped) continue;
      const role = trace.role_of[label] || trace.role_of[(trace.params[label] || [])[0]], w = bytes * scale, joined = label in trace.params && trace.params[label].length > 1;
      const name = role ? short(label) : "model";
      svg(picture, "rect", { x, y: y + 1, width: Math.max(0.5, w - 0.7), height: 32, fill: ROLE[role] || "var(--soft)",
        style: joined ? "stroke:var(--ink);stroke-width:2" : "" }, undefined, `${label || "the model's own tensors"}, ${mib(bytes)}`);
      if (w > wide(name) + 4) svg(picture, "text", { x: x + w / 2, y: y + 21, "text-anchor": "middle",
        style: `fill:${!role ? "var(--ground)" : DARK_TEXT.has(role) ? "#000" : "#fff"}` }, name);
      this.places.memory = { x: x + w / 2, y: y + 8 };
      x += w;
    }
    const mark = (bytes, text, dash, above) => {
      svg(picture, "line", { x1: bytes * scale, x2: bytes * scale, y1: y - 3, y2: y + 70, style: `stroke:var(--ink);stroke-width:2;stroke-dasharray:${dash}` });
      const isRight = bytes * scale > width / 2;
      svg(picture, "text", { x: bytes * scale + (isRight ? -5 : 5), y: y + above, "text-anchor": isRight ? "end" : "start" }, text);
    };
    mark(trace.model_bytes, `the model: ${mib(trace.model_bytes)}`, "5 3", 68);
    if (state.peak) svg(picture, "path", { d: `M${state.peak * scale},${y - 1} l-5,-7 h10 z`, style: "fill:#D55E00" }, undefined, `peak ${mib(state.peak)}`);
    for (const tick of roundTicks(top)) {
      if (tick * scale < width - 50) svg(picture, "text", { x: tick * scale, y: y + 50, style: "fill:var(--soft);paint-order:stroke;stroke:var(--ground);stroke-width:3px", "text-anchor": tick ? "middle" : "start" }, mib(tick));
    }
    y += 84;
    svg(picture, "text", { x: 0, y: y + 6, style: "fill:var(--soft)" },
      width < 640 ? `Mapped from files besides: ${mib(state.mapped)}` : `Mapped from files besides: ${mib(state.mapped)}. `
      + "The system may drop these pages and read them again, so they don't count.");
    return y + 16;
  }

  // The memory of one loader over its steps, with a cursor in the chosen one.
  drawRun(place, index) {
    const run = this.trace.runs[index], width = Math.max(60, place.clientWidth), height = 34;
    const top = Math.max(this.trace.model_bytes, ...this.trace.runs.map((each) => each.peak));
    place.closest("label").classList.toggle("chosen", index === this.chosen);
    const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    chart.setAttribute("height", height + 2);
    chart.setAttribute("aria-hidden", "true");
    let own = 0;
    const sizes = new Map(), points = [[0, height]];
    run.steps.forEach((step, at) => {
      for (const [id, , bytes, mapped] of step.add || []) if (!mapped) { sizes.set(id, bytes); own += bytes; }
      for (const id of step.drop || []) { own -= sizes.get(id) || 0; sizes.delete(id); }
      const level = height - (height - 2) * own / top;
      points.push([width * at / run.steps.length, level], [width * (at + 1) / run.steps.length, level]);
    });
    svg(chart, "polygon", { points: [...points, [width, height]].map((point) => point.join(",")).join(" "), fill: "#0072B2", "fill-opacity": 0.55 });
    const model = height - (height - 2) * this.trace.model_bytes / top;
    svg(chart, "line", { x1: 0, x2: width, y1: model, y2: model, style: "stroke:var(--ink);stroke-dasharray:5 3" });
    svg(chart, "line", { x1: 0, x2: width, y1: height, y2: height, style: "stroke:var(--rule)" });
    if (index === this.chosen && run.steps.length) {
      const at = width * this.position / run.steps.length;
      svg(chart, "line", { x1: at, x2: at, y1: 0, y2: height, style: "stroke:#D55E00;stroke-width:2.5" });
    }
    place.replaceChildren(chart);
  }

  // Let the bytes of a step move: from the file to memory or into place, or from memory to the parameter.
  fly(step) {
    if (!step || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const { file, param, memory } = this.places, first = (this.trace.params[step.name] || [])[0];
    const [from, to] = step.kind === "read" ? [file[step.key], memory] : step.kind === "place" ? [file[step.key], param[step.key]]
      : step.kind === "yield" || step.kind === "copy" ? [memory, param[first]] : [];
    if (!from || !to) return;
    const moving = svg(this.picture.firstChild, "rect", { x: from.x, y: from.y, width: Math.max(6, from.w || 30), height: 16,
      fill: ROLE[this.trace.role_of[step.key || first]] || "#8C8C8C", style: "stroke:var(--ink)" });
    moving.animate([{ transform: "none" }, { transform: `translate(${to.x - from.x}px, ${to.y - from.y}px)` }], { duration: 320, easing: "ease-in-out" })
      .onfinish = () => moving.remove();
  }
}

export function mount(place, trace) { return new ByteMap(place, trace, null); }

function render({ model, el }) {
  const map = new ByteMap(el, model.get("trace"), (index) => model.send({ run: index }));
  const take = (message) => {
    if (message.start !== undefined) { map.pause(); Object.assign(map.trace.runs[message.start], { steps: [], peak: 0, error: "" }); map.chosen = message.start; }
    if (message.steps) { map.run.steps.push(...message.steps); map.run.peak = message.peak; map.position = map.run.steps.length; }
    if (message.done) map.run.error = message.error;
    map.listRuns();
    map.draw();
  };
  model.on("msg:custom", take);
  return () => { model.off("msg:custom", take); map.pause(); map.observer.disconnect(); };
}

export default { render };
