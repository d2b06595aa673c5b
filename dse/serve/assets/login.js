"use strict";

document.querySelector("#login").addEventListener("submit", async (event) => {
  event.preventDefault();
  localStorage.setItem(KEY, document.querySelector("#token").value.trim());
  try {
    await changed("/api/session");
    location.href = "/";
  } catch (error) {
    localStorage.removeItem(KEY);
    document.querySelector("#answer").textContent = error.status === 401 ? "This is not the token." : error.message;
  }
});
if (token()) {
  document.querySelector("#token").value = token();
  document.querySelector("#login").requestSubmit();
}
