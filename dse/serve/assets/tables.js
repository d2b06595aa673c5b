"use strict";

// The order and the filter of a page's own table stand in its address: a link, or the way back,
// shows the same again.
const stated = (name) => new URLSearchParams(location.search).get(name) ?? "";

function keep(name, value) {
  const place = new URL(location.href);
  if (value) place.searchParams.set(name, value);
  else place.searchParams.delete(name);
  if (place.href !== location.href) history.replaceState(history.state, "", place);
}

// Rows are moved only where they are not in their place, and who had the focus keeps it.
function arrange(body, rows) {
  const focused = document.activeElement;
  for (const [place, row] of rows.entries()) {
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] ?? null);
  }
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

// A row is made anew only where something has changed, cell by cell, so that what is ticked, picked
// or has the focus stays. `named` tells which row is which.
function renewRows(body, rows, named) {
  const before = new Map([...body.rows].map((row) => [named(row), row]));
  const order = rows.map((made) => {
    const old = before.get(named(made));
    before.delete(named(made));
    if (!old) return made;
    for (const [place, cell] of [...made.cells].entries()) {
      if (old.cells[place].outerHTML !== cell.outerHTML) old.cells[place].replaceWith(cell);
    }
    return old;
  });
  for (const row of before.values()) row.remove();
  const sorted = body.parentElement.querySelector("th[aria-sort]");
  if (!sorted) arrange(body, order);
  else body.append(...order.filter((row) => !row.isConnected || row.parentElement !== body));
}

// A click on a heading sorts by it, another click turns the order round. What is not known is last.
function sort(heading, down) {
  const body = heading.closest("table").tBodies[0];
  const place = heading.cellIndex;
  const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    return (!isNaN(x) && !isNaN(y) ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
  };
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  arrange(body, [...body.rows].sort(order));
}

const called = (heading) => heading.querySelector("button")?.textContent ?? "";

document.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (!heading || !event.target.closest("button")) return;
  const down = heading.getAttribute("aria-sort") === "ascending";
  sort(heading, down);
  if (heading.closest("[id].scroll")) keep("sort", (down ? "-" : "") + called(heading));
});

// A filter leaves the rows of its table that have every word.
function filter(field) {
  const parts = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll(`${field.dataset.filters} tbody tr`)) {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
    row.hidden = !parts.every((part) => text.includes(part));
  }
}
document.addEventListener("input", (event) => {
  if (!event.target.dataset.filters) return;
  filter(event.target);
  keep("filter", event.target.value);
});

// As the address says; also after rows were made anew.
function restore() {
  const field = document.querySelector("#filter");
  if (field) {
    if (field !== document.activeElement) field.value = stated("filter");
    filter(field);
  }
  const [, minus, name] = stated("sort").match(/^(-?)(.*)$/s);
  const heading = [...document.querySelectorAll("[id].scroll th")].find((one) => name && called(one) === name);
  if (heading) sort(heading, minus === "-");
}
restore();
