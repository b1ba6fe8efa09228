// Signs in at once. Without this script the page works with its button.
"use strict";

document.getElementById("join").requestSubmit();
