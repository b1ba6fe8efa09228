"""What tests in a browser share: a key and what comes of it, what goes wrong on a page, and what nobody could read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATIENCE = 300.0  # seconds, on a machine with other work


def press(page: Page, key: str) -> None:
    """Press a key and wait for what comes of it."""
    turn = page.evaluate("Number(document.getElementById('page').dataset.turn || 0)")
    page.keyboard.press(key)
    page.wait_for_function("n => Number(document.getElementById('page').dataset.turn || 0) > n", arg=turn)


def listen(page: Page) -> list[str]:
    """What goes wrong on a page, from now on."""
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return wrong


UNNAMED = """() => [...document.querySelectorAll("button, a, input:not([type=hidden]), textarea, svg[role=img]")]
  .filter(e => !e.textContent.trim() && !e.getAttribute("aria-label") && !(e.labels || []).length)
  .map(e => e.outerHTML)"""

# Every element with text of its own: the contrast of its colour with the ground behind it, by WCAG, 4.5 or more.
FAINT = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = e => {
    const c = parse(getComputedStyle(e).backgroundColor);
    return c.length < 4 || c[3] > 0 ? c : e.parentElement ? ground(e.parentElement) : [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")]
    .filter(e => e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
    .filter(e => !e.closest("svg"))
    .map(e => { const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
      return [(a + .05) / (b + .05), e.outerHTML.slice(0, 80)]; })
    .filter(([ratio]) => ratio < 4.5);
}"""
