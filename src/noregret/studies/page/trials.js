// The trials: read from the page's download, and their table, which sorts and filters.
let facts = {}, trials = [];
const most = 2000;  // rows of the table
const short = value => {  // four digits, as formatting.number
  const found = Number(value.toPrecision(4)), size = Math.abs(found);
  return size === 0 || (size >= 1e-5 && size < 1e9) ? found.toLocaleString("en", {maximumFractionDigits: 9})
    : found.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
};
const brief = text => /^-?\d*\.\d+$|^-?[\d.]+e[+-]?\d+$/i.test(text) ? short(Number(text)) : text || "(empty)";  // as words.value

function parsed(text) {  // rows of a CSV, without the quotes that keep spreadsheets from computing cells
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    const cell = quoted === undefined ? plain : quoted.replace(/""/g, '"');
    rows[rows.length - 1].push(cell.replace(/^'(?='*[=+\-@\t\r\n])/, ""));
    if (end === "\n") rows.push([]);
  }
  return rows.filter(row => row.length > 3);
}

async function load() {  // the trials, from the page's download; also those that its table leaves out
  const link = document.querySelector("#trials a[download]");
  facts = JSON.parse(document.getElementById("data").textContent);
  trials = [];
  if (!link || !window.DecompressionStream) return;
  const bytes = Uint8Array.from(atob(link.href.split(",")[1]), each => each.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  link.download = link.download.replace(/\.gz$/, "");
  const [head, ...every] = parsed(text), seconds = head.indexOf("seconds");
  const rows = every.filter((row, i) => i + 1 === every.length || every[i + 1][0] !== row[0]);  // the last about each trial
  const places = facts.results.map(([name]) => head.indexOf(name));
  const side = (row, column) => ({at_least: "> ", at_most: "< "})[row[head.indexOf(boundOf(column))]] || "";  // as words.reading
  const spans = Object.fromEntries((facts.spans || []).map(([number, ...span]) => [number, span]));
  trials = rows.map(row => ({
    number: Number(row[0]), state: row[1], side: side(row, "value"), seconds: row[seconds] || "",
    values: Object.fromEntries(facts.results.map(([name], i) => [name, row[places[i]] === "" ? NaN : Number(row[places[i]])])),
    params: Object.fromEntries(facts.names.map((name, i) => [name, row[facts.first + i] || facts.blank[name]])
      .filter(([, its]) => its !== undefined)),
    context: facts.context.map((name, i) => [name, brief(row[facts.first + facts.names.length + i])]), span: spans[row[0]],
  }));
  list(rows, side);
}

function boundOf(column) {  // as page._bound_of
  const [kind, name] = column.split(/\.(.*)/);
  return column === "value" ? "bound" : `bound.${kind === "constraint" ? column : name}`;
}

function list(rows, side) {
  const body = document.querySelector("#trials tbody"), there = new Set([...body.rows].map(row => row.cells[0].textContent));
  const missing = rows.slice(-most).filter(row => !there.has(row[0]));
  if (!missing.length) return;
  body.append(...missing.reverse().map(row => {
    const line = document.createElement("tr");
    if (facts.kinds[row[0]] === "odd") line.className = "odd";
    line.append(...facts.header.map((column, i) => {
      const cell = document.createElement("td"), value = row[i], name = facts.names[i - facts.first];
      const [low, high] = facts.limits[column] || [null, null];
      if (i === 0) cell.textContent = value;
      else if (value !== "") cell.textContent = side(row, column) + brief(value);
      else if (name in facts.blank) cell.textContent = facts.blank[name] || "(empty)";
      if (value !== "" && (Number(value) < (low ?? -Infinity) || Number(value) > (high ?? Infinity))) cell.textContent += " ✗";
      return cell;
    }));
    return line;
  }));
  const all = [...body.rows].sort((a, b) => Number(b.cells[0].textContent) - Number(a.cells[0].textContent));
  body.append(...all);
  document.querySelector("#trials summary").textContent = `${all.length.toLocaleString("en")} trials, the last first`;
  if (all.length >= rows.length) document.querySelector("#trials .few").remove();
  shown();
}

const order = {column: -1, down: false}, sought = {text: ""};
const number = text => text.trim() === "" ? NaN : Number(text.replace(/,| ✗|[<>] /g, ""));

function compared(one, other, sign) {
  const [a, b] = [number(one), number(other)];
  return isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) || sign * one.localeCompare(other) : sign * (a - b);
}

function matches(row, names) {
  const cells = [...row.cells].map(cell => cell.textContent);
  return sought.text.split(/\s+/).filter(Boolean).every(term => {
    const [, name, sign, value] = term.match(/^(.+?)(<=|>=|<|>|=)(.+)$/) || [];
    const column = names.indexOf(name);
    if (column < 0) return cells.some(cell => cell.toLowerCase().includes(term.toLowerCase()));
    if (sign === "=") return cells[column] === value || number(cells[column]) === number(value);
    const [a, b] = [number(cells[column]), number(value)];
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[sign];
  });
}

function shown() {
  const box = document.querySelector("#trials details"), table = box && box.querySelector("table");
  if (!table) return;
  const names = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  if (order.column >= 0) {
    const sign = order.down ? -1 : 1;
    rows.sort((a, b) => compared(a.cells[order.column].textContent, b.cells[order.column].textContent, sign));
  }
  rows.forEach(row => { row.hidden = !matches(row, names); });
  table.tBodies[0].append(...rows);
  [...table.tHead.rows[0].cells].forEach((cell, i) =>
    cell.setAttribute("aria-sort", i !== order.column ? "none" : order.down ? "descending" : "ascending"));
  box.querySelector("output").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
}

function equipped() {
  const box = document.querySelector("#trials details"), table = box && box.querySelector("table");
  if (!table) return;
  const line = document.createElement("p"), field = document.createElement("input");
  field.type = "search";
  field.placeholder = "filter, as: wal size>8";
  field.setAttribute("aria-label", "filter trials");
  field.value = sought.text;
  field.addEventListener("input", () => { sought.text = field.value; shown(); });
  line.append(field, " ", document.createElement("output"));
  table.parentElement.before(line);
  [...table.tHead.rows[0].cells].forEach((cell, i) => {
    const button = document.createElement("button");
    button.append(...cell.childNodes);
    button.addEventListener("click", () => { order.down = order.column === i && !order.down; order.column = i; shown(); });
    cell.append(button);
  });
  shown();
}
equipped();
