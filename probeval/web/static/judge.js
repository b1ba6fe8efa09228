// Keys, and forms without a page load. Without this script the page works with its buttons.
"use strict";

(() => {
  const page = document.getElementById("page");
  const alertBox = document.getElementById("alert");
  const status = document.getElementById("status");
  let busy = false;

  function warn(text) {
    alertBox.textContent = text;
    alertBox.hidden = !text;
  }

  function show(html) {
    const open = [...page.querySelectorAll("details[open]")].map((part) => part.id);
    page.innerHTML = html;
    for (const id of ["curve", "guideline"]) {
      const part = document.getElementById(id);
      if (part) part.open = open.includes(id);
    }
    const notice = document.getElementById("notice");
    status.textContent = notice ? notice.textContent : "";
    const shown = document.getElementById("document");
    if (shown) shown.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    page.dataset.turn = String(Number(page.dataset.turn || 0) + 1);
  }

  const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

  // Send until the server responds. Every form has a request token, so a form sent twice counts once.
  async function send(address, body) {
    for (let wait = 1; ; wait = Math.min(2 * wait, 15)) {
      try {
        return await fetch(address, { method: "POST", body, headers: { "X-Part": "1" }, redirect: "error" });
      } catch {
        warn("The server does not respond. Your last step is not saved yet; trying again.");
        await pause(wait);
      }
    }
  }

  async function submit(form, button) {
    if (busy) return;
    busy = true;
    page.setAttribute("aria-busy", "true");
    try {
      const fields = new FormData(form);
      if (button && button.name) fields.set(button.name, button.value);
      const address = button && button.hasAttribute("formaction") ? button.formAction : form.action;
      const response = await send(address, new URLSearchParams(fields));
      const text = await response.text();
      if (response.ok) {
        warn("");
        show(text);
      } else if (response.status === 401) {
        location.assign("/login");
      } else {
        warn(text);
      }
    } catch {
      warn("The response was cut off. Reload the page to see whether the step was saved.");
    } finally {
      busy = false;
      page.removeAttribute("aria-busy");
    }
  }

  page.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(event.target, event.submitter);
  });

  function press(selector) {
    const button = document.querySelector(selector);
    if (button) button.click();
    return Boolean(button);
  }

  function enter() {
    const field = document.getElementById("text");
    if (!field) return false;
    document.getElementById("remarks").open = true;
    field.focus();
    return true;
  }

  const keys = {
    u: () => press("#undo button"),
    s: () => press("#skip button"),
    c: enter,
    f: () => press("#comment button[formaction]"),
    g: () => press("#guideline summary"),
  };

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input, textarea, select");
    if (event.key === "Escape" && field) {
      field.blur();
      return;
    }
    if (field) {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field.id === "text") {
        event.preventDefault();
        press("#comment button");
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (/^[0-9]$/.test(event.key)) {
      const typed = document.getElementById("grade");
      if (typed) {
        typed.focus(); // the digit goes into the field
      } else if (press(`#grades button[value="${event.key}"]`)) {
        event.preventDefault();
      }
    } else if (Object.hasOwn(keys, event.key) && keys[event.key]()) {
      event.preventDefault();
    }
  });

  // Refresh the progress strip: others judge, and the model is updated.
  setInterval(async () => {
    if (busy || document.hidden) return;
    try {
      const response = await fetch("/progress", { headers: { "X-Part": "1" } });
      const strip = document.getElementById("progress");
      if (!response.ok || busy || !strip) return;
      const open = Boolean(document.querySelector("#curve[open]"));
      strip.innerHTML = await response.text();
      const curve = document.getElementById("curve");
      if (curve) curve.open = open;
    } catch {
      // the next step reports the problem
    }
  }, 3000);
})();
