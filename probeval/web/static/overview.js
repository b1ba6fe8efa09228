// The page follows the campaign. Without this script it shows a moment, and a reload the next one.
"use strict";

(() => {
  const page = document.getElementById("standing");
  let last = page.innerHTML;

  function show(html) {
    const folds = new Map([...page.querySelectorAll("details[id]")].map((part) => [part.id, part.open]));
    const across = [...page.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
    const focused = page.contains(document.activeElement) ? document.activeElement : null;
    const address = focused ? focused.getAttribute("href") : null;
    page.innerHTML = html;
    for (const [id, open] of folds) {
      const part = document.getElementById(id);
      if (part) part.open = open;
    }
    page.querySelectorAll(".scroll").forEach((part, at) => {
      part.scrollLeft = across[at] || 0;
    });
    if (address) {
      const again = [...page.querySelectorAll("a")].find((link) => link.getAttribute("href") === address);
      if (again) again.focus({ preventScroll: true });
    }
    page.dataset.turn = String(Number(page.dataset.turn || 0) + 1);
  }

  const selecting = () => page.contains(getSelection().anchorNode) && !getSelection().isCollapsed;

  let asking = false; // a slow server is not asked twice at once
  const polling = setInterval(async () => {
    if (asking || document.hidden || selecting()) return;
    asking = true;
    try {
      const response = await fetch("/overview", { headers: { "X-Part": "1" } });
      if (response.status === 401) {
        clearInterval(polling);
        location.assign("/"); // which gives the reason
      }
      if (!response.ok) return;
      const text = await response.text();
      if (text !== last) {
        last = text;
        show(text);
      }
    } catch {
      // the server is away; the page shows the last moment
    } finally {
      asking = false;
    }
  }, 3000);
})();
