// Values under the pointer, zoom, the choice of the two parameters of the map, and the button that copies the command.
// The charts are complete without this script. It reads their axes from them, the trials from the page's download.
const kept = {zoom: {}, pair: []}, tip = document.createElement("div");
let byNumber = {}, pressed = null;
tip.id = "tip"; tip.hidden = true;
const reach = 16, few = 8;  // pixels around a mark, and parameters in a tooltip

const make = (name, marks = {}, ...inside) => {
  const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  Object.entries(marks).forEach(([key, value]) => made.setAttribute(key, value));
  made.append(...inside);
  return made;
};
// Axes: `share` is 0 at the low end and 1 at the high end, as in pictures.py.
const scaled = (axis, value) => axis.log ? Math.log(value) : value;
const share = (axis, value) => axis.high > axis.low
  ? (scaled(axis, value) - scaled(axis, axis.low)) / (scaled(axis, axis.high) - scaled(axis, axis.low)) : 0.5;
const valueAt = (axis, part) => {
  const found = scaled(axis, axis.low) * (1 - part) + scaled(axis, axis.high) * part;
  return axis.log ? Math.exp(found) : found;
};
function placed(axis, text) {
  if (!axis.names) return text === undefined ? NaN : Number(text);
  const found = axis.names.findIndex(name => name === text || name.toLowerCase() === String(text).toLowerCase());
  return found < 0 ? NaN : found;
}
function ends(axis, trial) {  // the first and the last value of a trial on an axis
  if (axis.column === "span") return trial.span ? trial.span.slice(0, 2) : [NaN, NaN];
  const found = axis.column === "trial" ? trial.number : axis.column === "worker" ? (trial.span || [])[2]
    : axis.column in trial.values ? trial.values[axis.column] : placed(axis, trial.params[(axis.column || "").slice(1)]);
  return [found, found];
}
function ticks(axis, most) {
  if (axis.names) return axis.names.map((name, i) => [i, name || "(empty)"]);
  if (axis.log) {
    const powers = [], first = Math.floor(Math.log10(axis.low)), last = Math.ceil(Math.log10(axis.high));
    for (let power = first; power <= last; power++) [1, 2, 5].forEach(factor => powers.push(factor * 10 ** power));
    const inside = powers.filter(value => value >= axis.low * (1 - 1e-9) && value <= axis.high * (1 + 1e-9));
    if (inside.length >= 3) return inside.map(value => [value, short(value)]);
  }
  const rough = (axis.high - axis.low) / most, power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(value => value >= rough * (1 - 1e-9));
  if (axis.whole) step = Math.max(1, Math.ceil(step));
  const found = [], decimals = Math.min(20, Math.max(0, Math.ceil(-Math.log10(step) + (/^25/.test((step / power) * 10) ? 1 : 0))));
  for (let i = Math.ceil(axis.low / step - 1e-9); i * step <= axis.high + 1e-9 * step; i++) {
    const value = i * step || 0;  // no -0
    found.push([value, step < 1e-4 || Math.abs(value) >= 1e6 ? short(value)
      : value.toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals})]);
  }
  return found;
}

class Chart {
  constructor(svg) {
    this.svg = svg;
    this.read();
    svg.addEventListener("pointermove", event => this.moved(event));
    svg.addEventListener("pointerdown", event => this.down(event));
    svg.addEventListener("pointerleave", () => { if (!pressed) tip.hidden = true; });
    svg.addEventListener("dblclick", () => this.zoom(null));
    this.dots();
    const before = kept.zoom[this.key];
    if (before) this.zoom(before);
  }
  get key() { return this.svg.getAttribute("aria-label") + this.svg.getAttribute("viewBox"); }
  read() {
    [this.left, this.top, this.width, this.height] = this.svg.dataset.plot.split(" ").map(Number);
    this.whole = {x: JSON.parse(this.svg.dataset.x), y: JSON.parse(this.svg.dataset.y)};
    Object.assign(this, this.whole);
  }
  at(event) {  // the pointer in units of the chart, and as shares of the plot
    const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const inside = part => Math.min(Math.max(part, 0), 1);
    return {x, y, across: inside((x - this.left) / this.width), up: inside((this.top + this.height - y) / this.height)};
  }
  spot(trial) {  // left, right and height of a trial
    const [[first, last], [height]] = [ends(this.x, trial), ends(this.y, trial)];
    const foot = this.x.column === "trial" && trial.state === "failed" ? this.y.low : height;
    const place = value => this.left + share(this.x, value) * this.width;
    return [place(first), place(last), this.top + (1 - share(this.y, foot)) * this.height];
  }
  dots() {  // exact places of all measurements in the whole chart: the page itself has them rounded, and not all
    if (trials.length > 4000 || !this.x.column || !this.y.column || this.x.column === "span") return;
    const found = {};
    trials.filter(trial => trial.state === "done").forEach(trial => {
      const [x, y] = [share(this.whole.x, ends(this.x, trial)[0]), share(this.whole.y, ends(this.y, trial)[0])];
      const kind = facts.kinds[trial.number] || "dot";
      if (y >= 0 && y <= 1 && x > -1e-6 && x < 1 + 1e-6) found[kind] = (found[kind] || "")
        + `M${(this.left + x * this.width).toFixed(2)} ${(this.top + (1 - y) * this.height).toFixed(2)}h0`;
    });
    Object.entries(found).forEach(([kind, d]) => this.svg.querySelectorAll(`.marks .${kind}`).forEach(mark => mark.setAttribute("d", d)));
  }
  nearest({x, y}) {
    const unit = this.svg.getScreenCTM().a, zoomed = this.x !== this.whole.x || this.y !== this.whole.y;
    let found = null, least = reach / unit;
    for (const trial of trials) {
      let [left, right, height] = this.spot(trial);
      if (zoomed && (height < this.top || height > this.top + this.height)) continue;
      height = Math.min(Math.max(height, this.top), this.top + this.height);
      if (right < this.left - 1 || left > this.left + this.width + 1) continue;
      const distance = Math.hypot(Math.max(left - x, 0, x - right), height - y);
      if (distance < least) [found, least] = [trial, distance];
    }
    return found;
  }
  moved(event) {
    const place = this.at(event);
    if (pressed) return this.dragged(place);
    const inside = place.x >= this.left - 8 && place.x <= this.left + this.width + 8 && place.y <= this.top + this.height + 8;
    const trial = inside && this.nearest(place);
    if (trial) show(event, lines(trial, [this.x, this.y]));
    else if (inside && this.grid) show(event, this.cell(place));
    else if (inside && this.svg.querySelector("polyline")) show(event, this.curve(place));
    else tip.hidden = true;
  }
  curve({across}) {  // what the lines say at the pointer
    const value = valueAt(this.x, across), x = this.left + share(this.whole.x, value) * this.width, rows = [];
    const read = (points, last) => {  // the height of a line at x; the last of several is its newest part
      const at = points.findLastIndex(([left]) => left <= x);
      if (at < 0 || (at === points.length - 1 && points[at][0] < x)) return "";
      const [[a, low], [b, high]] = [points[at], points[Math.min(at + 1, points.length - 1)]];
      const y = b > a ? low + (high - low) * (x - a) / (b - a) : low;
      const over = y <= this.top + 0.05 ? "over " : y >= this.top + this.height - 0.05 ? "under " : "";
      return over + short(Number(valueAt(this.whole.y, (this.top + this.height - y) / this.height).toPrecision(3)));
    };
    const points = mark => mark.getAttribute("points").split(" ").map(pair => pair.split(",").map(Number));
    const bands = [...this.svg.querySelectorAll("polygon")];
    [...this.svg.querySelectorAll("polyline")].forEach((line, i) => {
      const about = read(points(line)), corners = bands[i] ? points(bands[i]) : [];
      const [upper, lower] = [corners.slice(0, corners.length / 2), corners.slice(corners.length / 2).reverse()].map(read);
      if (about) rows.push([line.dataset.name || this.y.label, `${about}${facts.unit}${lower ? ` (${lower} to ${upper})` : ""}`]);
    });
    const step = this.x.whole ? Math.round(value) : value;
    return rows.length ? [`${this.x.label} ${short(step)}`, ...rows] : null;
  }
  cell({across, up}) {  // the estimate at the nearest point of the map
    const near = (axis, values, part) => values.reduce((best, value, i) =>
      Math.abs(share(axis, placed(axis, value)) - part) < Math.abs(share(axis, placed(axis, values[best])) - part) ? i : best, 0);
    const part = (axis, whole, its) => share(whole, valueAt(axis, its));
    const [i, j] = [near(this.whole.x, this.grid.x, part(this.x, this.whole.x, across)),
                    near(this.whole.y, this.grid.y, part(this.y, this.whole.y, up))];
    return [`about ${short(this.grid.z[j][i])}${facts.unit}`, [this.x.label, brief(this.grid.x[i])], [this.y.label, brief(this.grid.y[j])]];
  }
  down(event) {
    if (event.pointerType === "touch") return this.moved(event);
    if (event.button || (this.x.names && this.y.names)) return;
    const place = this.at(event);
    if (place.x < this.left || place.y > this.top + this.height) return;
    event.preventDefault();
    this.svg.setPointerCapture(event.pointerId);
    pressed = {place, box: make("rect", {class: "chosenrange"})};
    this.svg.append(pressed.box);
    tip.hidden = true;
    const stop = done => {
      if (!pressed) return;
      const {place: from, box} = pressed, sides = this.sides(this.at(done));
      box.remove();
      pressed = null;
      if (done.type === "pointerup" && sides.wide + sides.tall > 0) this.zoom({
        x: sides.wide ? [from.across, this.at(done).across].sort((a, b) => a - b).map(part => valueAt(this.x, part)) : [this.x.low, this.x.high],
        y: sides.tall ? [from.up, this.at(done).up].sort((a, b) => a - b).map(part => valueAt(this.y, part)) : [this.y.low, this.y.high],
      });
    };
    this.svg.addEventListener("pointerup", stop, {once: true});
    this.svg.addEventListener("pointercancel", stop, {once: true});
  }
  sides(to) {  // which sides a drag selects: one if it is nearly straight
    const from = pressed.place, [wide, tall] = [Math.abs(to.across - from.across) * this.width, Math.abs(to.up - from.up) * this.height];
    return {wide: !this.x.names && wide > 8 && wide > tall / 5, tall: !this.y.names && tall > 8 && tall > wide / 5};
  }
  dragged(to) {
    const {wide, tall} = this.sides(to), from = pressed.place;
    const side = (some, a, b, start, length) => some ? [Math.min(a, b), Math.abs(a - b)] : [start, length];
    const [x, width] = side(wide, this.left + from.across * this.width, this.left + to.across * this.width, this.left, this.width);
    const [y, height] = side(tall, this.top + (1 - from.up) * this.height, this.top + (1 - to.up) * this.height, this.top, this.height);
    Object.entries({x, y, width, height}).forEach(([name, value]) => pressed.box.setAttribute(name, value));
    pressed.box.toggleAttribute("hidden", !wide && !tall);
  }
  zoom(range) {  // show these ranges of values, or all
    if (!range) delete kept.zoom[this.key]; else kept.zoom[this.key] = range;
    this.x = range ? {...this.whole.x, low: range.x[0], high: range.x[1]} : this.whole.x;
    this.y = range ? {...this.whole.y, low: range.y[0], high: range.y[1]} : this.whole.y;
    const [a, b] = [this.x.low, this.x.high].map(value => this.left + share(this.whole.x, value) * this.width);
    const [c, d] = [this.y.high, this.y.low].map(value => this.top + (1 - share(this.whole.y, value)) * this.height);
    const [wide, tall] = [this.width / (b - a), this.height / (d - c)];
    const marks = this.svg.querySelector(".marks"), clip = "clip" + [...document.querySelectorAll("svg.chart")].indexOf(this.svg);
    if (!this.svg.querySelector("clipPath")) this.svg.prepend(make("clipPath", {id: clip}, make("rect", {
      x: this.left - 4, y: this.top - 4, width: this.width + 8, height: this.height + 8})));
    marks.setAttribute("transform", range ? `translate(${this.left - a * wide} ${this.top - c * tall}) scale(${wide} ${tall})` : "");
    if (!marks.parentNode.matches(".cut")) { const cut = make("g", {class: "cut"}); marks.replaceWith(cut); cut.append(marks); }
    marks.parentNode.setAttribute("clip-path", range ? `url(#${clip})` : "none");
    this.svg.querySelector(".edge").toggleAttribute("hidden", Boolean(range));
    this.drawTicks();
    let button = this.svg.nextElementSibling;
    if (!button || !button.matches(".reset")) {
      button = document.createElement("button");
      button.className = "reset " + [...this.svg.classList].filter(name => name === "wide" || name === "narrow").join("");
      button.textContent = "Show all";
      button.addEventListener("click", () => this.zoom(null));
      this.svg.after(button);
    }
    button.hidden = !range;
  }
  drawTicks() {
    const {left, top, width, height} = this, group = this.svg.querySelector(".ticks"), foot = top + height, letter = 6.6;
    group.replaceChildren(make("path", {class: "axis", d: `M${left} ${foot}H${left + width}`}));
    ticks(this.y, Math.max(2, Math.floor(height / 40))).forEach(([value, name]) => {
      const y = foot - share(this.y, value) * height;
      group.append(make("path", {class: "grid", d: `M${left} ${y}H${left + width}`}),
        make("text", {x: left - 6, y: y + 4, "text-anchor": "end"}, name.length > 7 ? name.slice(0, 6) + "…" : name));
    });
    const along = ticks(this.x, Math.max(2, Math.floor(width / 70))), fits = Math.floor(width / along.length / letter);
    let end = -Infinity;
    along.forEach(([value, name]) => {
      const x = left + share(this.x, value) * width;
      const text = this.x.names && name.length > fits ? name.slice(0, Math.max(fits - 1, 1)) + "…" : name, half = text.length * letter / 2;
      if (x - half <= end) return;
      end = x + half + 3;
      group.append(make("text", {x, y: foot + 15, "text-anchor": "middle"}, text));
    });
  }
}

function show(event, found) {  // title, then rows of name and value; below or above the pointer, inside of the window
  tip.hidden = !found;
  if (!found) return;
  const [title, ...rows] = found, head = document.createElement("b"), list = document.createElement("dl");
  head.textContent = title;
  rows.forEach(([name, value]) => [["dt", name], ["dd", value]].forEach(([tag, text]) => {
    const cell = document.createElement(tag);
    cell.textContent = text;
    list.append(cell);
  }));
  tip.replaceChildren(head, list);
  const {width, height} = tip.getBoundingClientRect(), edge = document.documentElement.clientWidth;
  const below = event.clientY + 14 + height < window.innerHeight;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, edge - width - 4))}px`;
  tip.style.top = `${Math.max(4, below ? event.clientY + 14 : event.clientY - height - 10)}px`;
}
function lines(trial, axes = []) {
  const first = axes.map(axis => (axis.column || "").slice(1)).filter(name => name in trial.params);
  const names = [...new Set([...first, ...facts.order])].filter(name => name in trial.params), kind = facts.kinds[trial.number];
  const rows = facts.results.map(([name, label, unit]) =>
    [label, isNaN(trial.values[name]) ? trial.state === "done" ? "not measured" : trial.state : trial.side + short(trial.values[name]) + unit]);
  if (trial.seconds && facts.unit !== " s") rows.push(["took", `${short(Number(trial.seconds))} s`]);
  rows.push(...trial.context, ...names.slice(0, few).map(name => [name, brief(trial.params[name])]));
  if (names.length > few) rows.push(["", `and ${names.length - few} more`]);
  const said = {cut: ", cut short", odd: ", outlying", early: ", at a lower fidelity", broken: ", breaks a constraint", chosen: ", best setting", yours: ", your settings"}[kind] || "";
  return [`trial ${trial.number}${said}`, ...rows];
}

function threads(svg) {  // the chart of all parameters: the trial of the nearest line
  const paths = [...svg.querySelectorAll("path[data-trial]")].map(path =>
    [path, [...path.getAttribute("d").matchAll(/([ML])([\d.-]+) (\d+)/g)].map(([, pen, x, y]) => [pen, Number(x), Number(y)])]);
  let lit = null;
  const light = path => { if (lit) lit.classList.remove("lit"); lit = path; if (lit) lit.classList.add("lit"); };
  svg.addEventListener("pointermove", event => {
    const {x, y} = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let found = null, least = 10;
    paths.forEach(([path, points]) => points.forEach(([pen, right, low], i) => {
      if (!i || pen === "M" || y < points[i - 1][2] || y > low) return;
      const [, left, high] = points[i - 1], distance = Math.abs(left + (right - left) * (y - high) / (low - high) - x);
      if (distance <= least) [found, least] = [path, distance];
    }));
    light(found);
    const trial = found && byNumber[found.dataset.trial];
    show(event, trial ? lines(trial) : found ? ["the best setting"] : null);
  });
  svg.addEventListener("pointerleave", () => { light(null); tip.hidden = true; });
}

function chooser(chart) {  // two lists for the parameters of the map
  const names = Object.keys(facts.maps.axes), box = document.getElementById("choice");
  if (!names.every(name => names.length > 1) || !box) return;
  const lists = ["across", "up"].map((side, i) => {
    const label = document.createElement("label"), list = document.createElement("select");
    names.forEach(name => list.add(new Option(name, name)));
    list.value = kept.pair[i] || [facts.maps.surfaces[0].across, facts.maps.surfaces[0].down][i];
    label.append(`${side} `, list);
    box.append(label);
    return list;
  });
  const change = i => {
    if (lists[0].value === lists[1].value) lists[1 - i].value = kept.pair[i];  // they change places
    kept.pair = lists.map(list => list.value);
    draw(chart, ...kept.pair);
  };
  if (lists.some(list => !names.includes(list.value))) kept.pair = [];
  chart.grid = surface(lists[0].value, lists[1].value);
  if (kept.pair.length) draw(chart, ...kept.pair); else kept.pair = lists.map(list => list.value);
  lists.forEach((list, i) => list.addEventListener("change", () => change(i)));
}
function surface(across, down) {
  const found = facts.maps.surfaces.find(its => its.across === across && its.down === down);
  if (found) return found;
  const turned = facts.maps.surfaces.find(its => its.across === down && its.down === across);
  return {x: turned.y, y: turned.x, z: turned.x.map((_, i) => turned.z.map(row => row[i]))};
}
function draw(chart, across, down) {  // the map of two parameters
  const grid = surface(across, down), {svg} = chart, marks = svg.querySelector(".marks");
  chart.zoom(null);
  Object.assign(svg.dataset, {x: facts.maps.axes[across], y: facts.maps.axes[down]});
  svg.setAttribute("aria-label", `Estimate by ${across} and ${down}`);
  chart.read();
  chart.grid = grid;
  const {left, top, width, height} = chart, all = grid.z.flat(), low = Math.min(...all), high = Math.max(...all);
  const cells = (axis, values) => {  // the ends of the cells along an axis, and the place of each among the values
    const places = values.map(value => share(axis, placed(axis, value))), count = axis.names ? values.length : 4 * (values.length - 1);
    const at = middle => {
      const i = Math.min(Math.max(places.findLastIndex(place => place <= middle), 0), places.length - 2);
      return i + (middle - places[i]) / (places[i + 1] - places[i]);
    };
    return Array.from({length: count}, (_, i) => [i / count, (i + 1) / count, axis.names ? i : at((i + 0.5) / count)]);
  };
  const paths = Array(8).fill("");
  for (const [bottom, ceiling, j] of cells(chart.y, grid.y)) for (const [start, end, i] of cells(chart.x, grid.x)) {
    const [a, b] = [Math.floor(i), Math.floor(j)], [c, d] = [Math.min(a + 1, grid.x.length - 1), Math.min(b + 1, grid.y.length - 1)];
    const z = (grid.z[b][a] * (1 - i + a) + grid.z[b][c] * (i - a)) * (1 - j + b) + (grid.z[d][a] * (1 - i + a) + grid.z[d][c] * (i - a)) * (j - b);
    const good = facts.maps.minimize ? high - z : z - low;
    const place = part => (left + part * width).toFixed(1), level = part => (top + (1 - part) * height).toFixed(1);
    paths[Math.min(Math.floor(8 * good / (high - low || 1)), 7)] += `M${place(start)} ${level(ceiling)}H${place(end)}V${level(bottom)}H${place(start)}z`;
  }
  marks.replaceChildren(...paths.map((d, i) => make("path", {class: `shade${i}`, d})));
  const best = [chart.x, chart.y].map(axis => share(axis, placed(axis, facts.maps.best[axis.label])));
  for (const kind of ["early", "cut", "dot", "broken", "yours", "chosen", "odd", "recommended"])
    (["cut", "broken", "recommended"].includes(kind) ? ["ring", "core"] : ["point"]).forEach(part =>
      marks.append(make("path", {class: `${kind} ${part}`, d: kind === "recommended"
        ? `M${left + best[0] * width} ${top + (1 - best[1]) * height}h0` : ""})));
  chart.dots();
  svg.querySelector(".label.x").textContent = across;
  svg.querySelector(".label.y").textContent = down;
  const [worst, most] = facts.maps.minimize ? [high, low] : [low, high];
  document.getElementById("worst").textContent = short(worst) + facts.unit;
  document.getElementById("most").textContent = short(most) + facts.unit;
  chart.drawTicks();
}

function copying() {
  document.querySelectorAll(".command").forEach(box => {
    const button = document.createElement("button"), code = box.querySelector("code");
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch (error) {
        getSelection().selectAllChildren(code);
        document.execCommand("copy");
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    box.append(button);
  });
}

async function drawn() {
  document.body.append(tip);
  tip.hidden = true;
  pressed = null;
  copying();
  await load();
  byNumber = Object.fromEntries(trials.map(trial => [trial.number, trial]));
  document.querySelectorAll("svg.chart[data-x]").forEach(svg => {
    const chart = new Chart(svg);
    if (svg.matches(".map") && facts.maps) chooser(chart);
  });
  document.querySelectorAll("svg.parallel").forEach(threads);
  document.body.dataset.drawn = trials.length;
}
drawn();
