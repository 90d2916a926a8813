// What a self-contained page carries inside itself, and how such a page makes another one.

const DATA = "saccade-data";
const BLOCK = `<script type="application/json" id="${DATA}">`;

/** The data block of a self-contained page: {weights, worker, glyphs, views, policy}; null in a page that is served. */
export function embedded() {
  const block = document.getElementById(DATA);
  return block && JSON.parse(block.textContent);
}

/** Markup of the page as it came, before any script touched it; call it first. */
export function pristine(root) {
  return root.outerHTML;
}

/** The text of a page that shows `views`, made of this page's own style, script and markup. */
export function pageOfOwnParts(data, markup, views) {
  const [style, script] = ["saccade-style", "saccade-script"].map((id) => document.getElementById(id).textContent);
  const carried = { ...data, weights: [], worker: null, glyphs: null, views };
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${data.policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>saccade: where the model looked</title>
<style id="saccade-style">${style}</style>
</head>
<body>
${markup}
${BLOCK}${asData(carried)}<\/script>
<script id="saccade-script">${script}<\/script>
</body>
</html>
`;
}

/** The text of a served viewer page with `views` put into its empty data block. */
export async function pageOfServer(views) {
  const response = await fetch("viewer.html");
  if (!response.ok) throw new Error(`the server has no viewer page to save (${response.status})`);
  const text = await response.text();
  const start = text.indexOf(BLOCK) + BLOCK.length;
  const end = text.indexOf("<\/script>", start);
  return text.slice(0, start) + asData({ ...JSON.parse(text.slice(start, end)), views }) + text.slice(end);
}

/** JSON that can stand inside a script element whatever it says. */
function asData(value) {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}
