"use strict";

// The list is asked for again and again while somebody looks at it.
const LOOK_MS = 3000;
const list = document.querySelector("#studies tbody");
const named = (row) => row.querySelector("[name=study]").value;

function renew(page) {
  renewRows(list, [...page.querySelectorAll("#studies tbody tr")], named);
  document.querySelector("#none").hidden = list.rows.length > 0;
  restore();
  counted();
}

function counted() {
  const button = document.querySelector("#compare");
  const ticked = list.querySelectorAll(":checked").length;
  button.disabled = ticked < 2;
  button.textContent = ticked < 2 ? "Compare: tick two or more" : `Compare ${ticked} studies`;
}

async function look() {
  try {
    if (!document.hidden) {
      renew(await part("/"));
      banner();
    }
  } catch (error) {
    banner(error.message);
  }
  setTimeout(look, LOOK_MS);
}
list.addEventListener("change", counted);
counted();
setTimeout(look, LOOK_MS);
