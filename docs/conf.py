"""Sphinx configuration. Some reference pages are generated at build time: see generate.py and listing.py."""

import importlib
import re
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402
import listing  # noqa: E402
import news  # noqa: E402
import notebooks  # noqa: E402
from docutils import nodes  # noqa: E402
from docutils.utils.math import MathError  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402
from sphinx.util import logging  # noqa: E402

import probeval  # noqa: E402

project = "probeval"
author = "the probeval authors"
copyright = "the probeval authors, BSD-3-Clause"
version = release = probeval.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = [
    "_build",
    "**/.*",
    "news",  # parts of the changelog, by way of news.md
    "reference/generated/news.md",
    "reference/generated/notebook.md",  # part of notebook.md
]

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # shapes and meaning stand in the docstrings
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_attr_annotations = False

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = f"probeval {release}"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_css_files = ["probeval.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "probeval"},
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"install": [], "tutorial": [], "notebook": [], "architecture": [], "evidence": [], "changelog": []}


def _write_pages(app):
    folder = HERE / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    notebook = notebooks.page(notebooks.read())
    written = {"listing.md": listing.page(), "news.md": news.section("Unreleased"), "notebook.md": notebook}
    for name, page in {**generate.pages(), **written}.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def _public_name(app, env, node, contnode):
    """Link ``probeval.Runs`` to where ``probeval.data.Runs`` is documented."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("probeval."):
        return None
    parts = target.split(".")
    thing = getattr(probeval, parts[1], None)
    home = getattr(thing, "__module__", None)
    if home is None or not home.startswith("probeval."):
        return None
    face = ".".join(home.split(".")[:2])
    if not hasattr(importlib.import_module(face), parts[1]):
        return None
    full = ".".join([face, *parts[1:]])
    domain = env.get_domain("py")
    return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], full, node, contnode)


def _mathml(node, **options):
    """A formula as MathML, which browsers show without a script or a network."""
    tex = re.sub(r"\\([bB]igg?)(?![a-zA-Z])", r"\\\1l", node.astext()).replace(r"\dots", r"\ldots")
    try:
        return tex2mathml(tex, **options)
    except MathError as error:
        logging.getLogger(__name__).warning("%s: %s", error, tex, location=node)
        return f"<code>{escape(tex)}</code>"


def _inline_math(translator, node):
    translator.body.append(_mathml(node))
    raise nodes.SkipNode


def _block_math(translator, node):
    translator.body.append(f'<div class="formula">{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(_inline_math, None), block_renderers=(_block_math, None))
    app.connect("builder-inited", _write_pages)
    app.connect("missing-reference", _public_name)
