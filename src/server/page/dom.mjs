// Makes elements. Text is always text.

export function find(id) {
  return document.getElementById(id);
}

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Changes nothing that is so already, so that nobody is told twice.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setFigure(element, [text, unit]) {
  setText(element, text);
  if (unit) element.append(make('span', {className: 'unit'}, ` ${unit}`));
}

// What is kept for the tab or for longer; a browser may refuse to keep anything.
export function recall(storage, name) {
  try {
    return JSON.parse(window[storage].getItem(`troupe.${name}`));
  } catch {
    return null;
  }
}
export function remember(storage, name, value) {
  try {
    if (value === null) window[storage].removeItem(`troupe.${name}`);
    else window[storage].setItem(`troupe.${name}`, JSON.stringify(value));
  } catch {
    // Then it is not kept.
  }
}
