const order = {column: -1, down: false}, sought = {text: ""};
const number = text => text.trim() === "" ? NaN : Number(text.replace(/,| ✗/g, ""));

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
