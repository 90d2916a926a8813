// Building and finding elements; text is always set as text, so nothing a user wrote can become markup.

/** A new element: `element("button", {class: "chip", text: "7", onclick: ask}, child, …)`. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value); // null: nothing listens
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function button(text, onclick, more = {}) {
  return element("button", { type: "button", text, onclick, ...more });
}

/** What a list offers: the names, or in their place `words`. */
export function options(names, words = {}) {
  return names.map((name) => element("option", { value: name, text: words[name] ?? name }));
}

/** The element of `root` that the markup calls `name`. */
export function part(root, name) {
  const found = root.querySelector(`[data-part="${name}"]`);
  if (!found) throw new Error(`the page has no part '${name}'`);
  return found;
}

/** `share` (0..1) in percent; what is neither 0 nor 1 never reads as if it were. */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99.9 && value < 100) return "> 99.9 %";
  const near = (value > 0 && value < 1) || (value > 99 && value < 100);
  return `${value.toFixed(near ? 1 : 0)} %`;
}

/** A weight with three significant digits. */
export function weight(value) {
  if (value === 0) return "0";
  return Math.abs(value) < 0.001 ? value.toExponential(1) : value.toPrecision(3);
}
