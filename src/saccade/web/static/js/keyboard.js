// Everything that can be done with the pointer, by keys; those that change a digit want the picture in focus.

/** `does` names what keys do: composer, player, ask(digit), toggle(name). */
export function listen(root, does) {
  // A page of its own hears every key; inside a report only those that are meant for it, so that space still scrolls.
  const ears = root.parentElement === document.body ? document : root;
  ears.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input, select, textarea")) return;
    const onScene = does.composer.isOpen && event.target.matches("[data-part=stage]");
    const action =
      (onScene && stageKeys(does, event)[event.key]) || pageKeys(does)[event.key] || digitKey(does, event.key);
    if (!action || (event.key === " " && event.target.matches("button"))) return;
    event.preventDefault();
    action();
  });
}

function stageKeys({ composer }, { shiftKey }) {
  const far = shiftKey ? 8 : 2;
  return {
    ArrowLeft: () => composer.nudge(-far, 0),
    ArrowRight: () => composer.nudge(far, 0),
    ArrowUp: () => composer.nudge(0, -far),
    ArrowDown: () => composer.nudge(0, far),
    "+": () => composer.grow(2),
    "-": () => composer.grow(-2),
    "]": () => composer.cycle(1),
    "[": () => composer.cycle(-1),
    c: () => composer.recolour(),
    Delete: () => composer.remove(),
    Backspace: () => composer.remove(),
  };
}

function pageKeys({ player, composer, toggle }) {
  return {
    " ": () => player.toggle(),
    ",": () => player.move(-1),
    ".": () => player.move(1),
    n: () => composer.shuffle(),
    o: () => toggle("outline"),
    "?": () => toggle("help"),
  };
}

function digitKey({ ask }, key) {
  return /^[0-9]$/.test(key) ? () => ask(key) : null;
}
