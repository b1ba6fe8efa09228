"""The tutorial notebook: run it, store its outputs, and write it as a page.

``python docs/notebooks.py`` runs ``docs/notebook.ipynb`` and stores what it prints, so that the notebook on GitHub and
the page of the documentation show the same. A test compares the stored outputs with those of a new run.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["NOTEBOOK", "outputs", "page", "read", "run"]

NOTEBOOK = Path(__file__).parent / "notebook.ipynb"
SECONDS = 600  # for one cell
FRAME, PLAIN = '<table border="1" class="dataframe">', '<table class="frame">'  # of pandas; the page has its own style


def read(path: Path = NOTEBOOK) -> dict[str, Any]:
    """The stored notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook after a run in an empty folder; fails with the first cell that fails."""
    import nbformat
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        made = nbformat.reads(json.dumps(notebook), as_version=4)
        client = NotebookClient(made, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}})
        client.execute()
    done: dict[str, Any] = json.loads(nbformat.writes(made))
    for cell in done["cells"]:
        cell["metadata"] = {}  # times of the run
    done["metadata"].pop("language_info", None)  # the version of Python
    return done


def outputs(notebook: dict[str, Any]) -> list[list[str]]:
    """What each cell prints and returns, as plain text."""
    return [[_text(one, "text/plain") for one in cell.get("outputs", ())] for cell in notebook["cells"]]


def _text(output: dict[str, Any], kind: str) -> str:
    found = output.get("text") or output.get("data", {}).get(kind, "")
    return "".join(found)


def page(notebook: dict[str, Any]) -> str:
    """The notebook as a page of the documentation, in MyST."""
    cells = notebook["cells"][1:]  # the title is that of the page
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        html = "".join(output.get("data", {}).get("text/html", ""))
        image = "".join(output.get("data", {}).get("image/png", "")).replace("\n", "")
        if html:
            yield f'```{{raw}} html\n<div class="cell-output">{html.replace(FRAME, PLAIN)}</div>\n```'
        elif image:
            shown = f'<img alt="The figure that the cell draws" src="data:image/png;base64,{image}">'
            yield f'```{{raw}} html\n<div class="cell-output">{shown}</div>\n```'
        else:
            yield f"```text\n{_text(output, 'text/plain').rstrip()}\n```"


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(run(read()), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
