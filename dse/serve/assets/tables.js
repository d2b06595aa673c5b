"use strict";

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
  const rows = [...body.rows];
  const sorted = [...rows].sort(order);
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  if (sorted.some((row, at) => row !== rows[at])) body.append(...sorted);
}

function resort(body) {
  const heading = body.closest("table").querySelector("th[aria-sort]");
  if (heading) sort(heading, heading.getAttribute("aria-sort") === "descending");
}

document.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (heading && event.target.closest("button")) sort(heading, heading.getAttribute("aria-sort") === "ascending");
});

// A filter leaves the rows of its table that have every word.
function filter(field) {
  if (!field) return;
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll(`${field.dataset.filters} tbody tr`)) {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}
document.addEventListener("input", (event) => { if (event.target.dataset.filters) filter(event.target); });
