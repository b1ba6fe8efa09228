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

  // The time on a document: seconds in which the page is in sight and there was input within the last minute.
  const IDLE = 60000;
  let spent = 0;
  let counted = performance.now();
  let touched = counted;
  let visible = !document.hidden;

  function count() {
    const now = performance.now();
    if (visible) spent += Math.max(0, Math.min(now, touched + IDLE) - counted);
    counted = now;
  }

  function touch() {
    count();
    touched = counted;
  }

  for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "scroll", "timeupdate"]) {
    document.addEventListener(kind, touch, { capture: true, passive: true });
  }
  document.addEventListener("visibilitychange", () => {
    count();
    visible = !document.hidden;
    touched = counted;
  });

  const label = (name) => {
    const part = document.getElementById(name);
    return part ? part.getAttribute("aria-label") : "";
  };

  function show(html) {
    const folds = new Map([...page.querySelectorAll("details[id]")].map((part) => [part.id, part]));
    const before = label("document");
    const typed = new Map([...page.querySelectorAll("[data-typed]")].map((part) => [part.id, part.value]));
    page.innerHTML = html;
    for (const id of ["curve", "guideline", "query-guideline", "help"]) {
      const [was, part] = [folds.get(id), document.getElementById(id)];
      if (was && part && was.dataset.of === part.dataset.of) part.open = was.open;
    }
    const notice = document.getElementById("notice");
    status.textContent = notice ? notice.textContent : "";
    const shown = document.getElementById("document");
    if (shown) shown.focus({ preventScroll: true });
    window.scrollTo(0, 0);
    if (label("document") !== before) {
      touch();
      spent = 0;
    } else {
      for (const [id, value] of typed) if (document.getElementById(id)) document.getElementById(id).value = value;
    }
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
      if (form.getAttribute("action") === "/judge") {
        count();
        fields.set("seconds", (spent / 1000).toFixed(1));
      }
      const address = button && button.hasAttribute("formaction") ? button.formAction : form.action;
      const response = await send(address, new URLSearchParams(fields));
      const text = await response.text();
      if (response.ok) {
        warn("");
        show(text);
      } else {
        warn(text); // the page stays, with all that was typed
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

  // A key belongs to the element with this data-key: a field or a choice is entered, anything else is clicked.
  function press(key) {
    const menu = page.querySelector("details.menu[open]");
    const ready = (part) => part.checkVisibility() || part.closest("details:not(.menu)"); // a closed menu has no keys
    const found = (menu && menu.querySelector(`form [data-key~="${key}"]`)) ||
      [...page.querySelectorAll(`[data-key~="${key}"]`)].find(ready);
    if (!found) return false;
    if (found.matches("textarea, input:not([type=radio]), [data-enter]")) {
      const fold = found.closest("details");
      if (fold) fold.open = true;
      found.focus();
    } else {
      if (found.matches("input")) found.focus({ preventScroll: true });
      found.click();
    }
    return true;
  }

  function leave(field) {
    const menu = page.querySelector("details.menu[open]");
    const chosen = page.querySelector("[name=choice]:checked");
    if (field) field.blur();
    else if (menu) menu.open = false;
    else if (chosen) chosen.checked = false;
  }

  // The browser's own words for a number that is too small name the smallest one that fits.
  page.addEventListener("invalid", ({ target }) => {
    if (target.validity.rangeUnderflow && target.dataset.least) target.setCustomValidity(target.dataset.least);
  }, true);
  page.addEventListener("input", ({ target }) => target.setCustomValidity(""));

  page.addEventListener("change", (event) => {
    const follow = event.target.name === "choice" && page.querySelector(".follow-up");
    if (follow) status.textContent = follow.getAttribute("aria-label");
  });

  function mark(on) {
    document.body.classList.toggle("unmarked", !on);
    try {
      localStorage.setItem("marks", on ? "on" : "off");
    } catch {
      // it is forgotten with the page
    }
  }
  try {
    if (localStorage.getItem("marks") === "off") mark(false);
  } catch {
    // marks are on
  }

  document.addEventListener("keydown", (event) => {
    const field = event.target.closest("input:not([type=radio]), textarea, select");
    if (event.key === "Escape") {
      leave(field);
      return;
    }
    if (field) {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && field.matches("textarea")) {
        event.preventDefault();
        if (field.form.id === "answer") field.blur(); // a comment is sent with an answer
        else field.form.requestSubmit();
      } else if (event.key === "Enter" && field.id === "text" && field.matches("input")) {
        event.preventDefault(); // a reason is sent with a grade
        field.blur();
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const isArrow = event.key.startsWith("Arrow");
    if (isArrow && (event.shiftKey || event.target.closest("audio, .scroll"))) return; // selects, seeks or scrolls
    const fields = [...page.querySelectorAll("[data-typed]")];
    const typed = fields.find((each) => !each.value) || fields[0];
    if (event.key === "h") {
      mark(document.body.classList.contains("unmarked"));
    } else if (/^[0-9.]$/.test(event.key) && typed && !page.querySelector("details.menu[open]")) {
      typed.focus(); // the digit goes into the field
    } else if (/^([0-9a-z?=]|Arrow(Left|Right))$/.test(event.key) && press(event.key)) {
      event.preventDefault();
    }
  });

  // Refresh the progress strip: others judge, and the model is updated. A slow server is not asked twice at once.
  let asking = false;
  const polling = setInterval(async () => {
    if (asking || busy || document.hidden || !document.getElementById("progress")) return;
    asking = true;
    try {
      const response = await fetch("/progress", { headers: { "X-Part": "1" } });
      const strip = document.getElementById("progress");
      if (response.status === 401) {
        clearInterval(polling); // the session has ended, and the form of another one is on another page
        warn(await response.text());
      }
      if (!response.ok || busy || !strip) return;
      const open = Boolean(document.querySelector("#curve[open]"));
      strip.innerHTML = await response.text();
      const curve = document.getElementById("curve");
      if (curve) curve.open = open;
    } catch {
      // the next step reports the problem
    } finally {
      asking = false;
    }
  }, 3000);
})();
