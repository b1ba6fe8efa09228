// Keys and forms without a page load. Without this script the page works all the same, by its buttons.
"use strict";

(() => {
  const page = document.getElementById("page");
  const alertBox = document.getElementById("alert");
  const said = document.getElementById("said");
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
    said.textContent = notice ? notice.textContent : "";
    const shown = document.getElementById("document");
    if (shown) shown.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    page.dataset.turn = String(Number(page.dataset.turn || 0) + 1);
  }

  const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

  // Send until the server has answered. Every form names its request, so one that is sent twice counts once.
  async function send(address, body) {
    for (let wait = 1; ; wait = Math.min(2 * wait, 15)) {
      try {
        return await fetch(address, { method: "POST", body, headers: { "X-Part": "1" }, redirect: "error" });
      } catch {
        warn("The server does not answer. Your last step is not saved yet; trying again.");
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
      const answer = await send(address, new URLSearchParams(fields));
      const text = await answer.text();
      if (answer.ok) {
        warn("");
        show(text);
      } else if (answer.status === 401) {
        location.assign("/login");
      } else {
        warn(text);
      }
    } catch {
      warn("The answer was cut off. Reload the page to see whether the step was saved.");
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

  // The strip is renewed now and then: others judge, and the model goes on.
  setInterval(async () => {
    if (busy || document.hidden) return;
    try {
      const answer = await fetch("/progress", { headers: { "X-Part": "1" } });
      const strip = document.getElementById("progress");
      if (!answer.ok || busy || !strip) return;
      const open = Boolean(document.querySelector("#curve[open]"));
      strip.innerHTML = await answer.text();
      const curve = document.getElementById("curve");
      if (curve) curve.open = open;
    } catch {
      // the next step says so, where it matters
    }
  }, 3000);
})();
