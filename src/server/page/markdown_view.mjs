// What the tree of markdown.mjs looks like. Makes elements and texts only, never HTML of a text.
import {make} from './dom.mjs';
import {parseMarkdown} from './markdown.mjs';

const kMarkTags = {strong: 'strong', emphasis: 'em', deleted: 'del'};

function inlineNodes(parts) {
  return parts.map((part) => {
    if (typeof part === 'string') return part;
    if (part.type === 'break') return make('br');
    if (part.type === 'code') return make('code', {}, part.text);
    if (part.type === 'link') {
      return make('a', {href: part.url, target: '_blank', rel: 'noopener noreferrer nofollow'}, ...inlineNodes(part.inline));
    }
    return make(kMarkTags[part.type], {}, ...inlineNodes(part.inline));
  });
}

function codeNode({language, text}) {
  const copy = make('button', {type: 'button', className: 'quiet'}, 'Copy');
  copy.setAttribute('aria-label', 'Copy the code');
  copy.addEventListener('click', () => copyText(text, copy));
  return make('div', {className: 'code'}, make('div', {className: 'code-head'}, make('span', {}, language || 'text'), copy),
              make('pre', {tabIndex: 0}, make('code', {}, text)));
}

function tableNode({align, head, rows}) {
  const cells = (tag, texts) => texts.map((text, i) => {
    const cell = make(tag, {}, ...inlineNodes(text));
    if (tag === 'th') cell.scope = 'col';
    if (align[i] && align[i] !== 'start') cell.style.textAlign = align[i];
    return cell;
  });
  return make('div', {className: 'table', tabIndex: 0, role: 'region', 'aria-label': 'Table'}, make('table', {},
      make('thead', {}, make('tr', {}, ...cells('th', head))),
      make('tbody', {}, ...rows.map((row) => make('tr', {}, ...cells('td', row))))));
}

function listNode({ordered, start, items}) {
  const list = make(ordered ? 'ol' : 'ul', {}, ...items.map((blocks) => {
    // A single paragraph stands in its item as it is.
    const tight = blocks.map((block, i) => i === 0 && block.type === 'paragraph' ? inlineNodes(block.inline) : [blockNode(block)]);
    return make('li', {}, ...tight.flat());
  }));
  if (ordered && start !== 1) list.start = start;
  return list;
}

function blockNode(block) {
  switch (block.type) {
    case 'heading':
      return make(`h${Math.min(block.level + 2, 6)}`, {}, ...inlineNodes(block.inline));
    case 'code':
      return codeNode(block);
    case 'quote':
      return make('blockquote', {}, ...block.blocks.map(blockNode));
    case 'list':
      return listNode(block);
    case 'table':
      return tableNode(block);
    case 'rule':
      return make('hr');
    default:
      return make('p', {}, ...inlineNodes(block.inline));
  }
}

// Shows a text that grows: what has not changed stays, with what a reader has selected in it.
export class MarkdownView {
  #shown = [];  // sources of the blocks

  constructor(element) {
    this.element = element;
  }

  show(text) {
    const blocks = parseMarkdown(text);
    let same = 0;
    while (same < blocks.length && same < this.#shown.length && blocks[same].source === this.#shown[same]) ++same;
    while (this.element.children.length > same) this.element.lastElementChild.remove();
    this.element.append(...blocks.slice(same).map(blockNode));
    this.#shown = blocks.map((block) => block.source);
  }
}

export async function copyText(text, button) {
  const said = await putOnClipboard(text) ? 'Copied' : 'Not allowed';
  const {textContent} = button, label = button.getAttribute('aria-label');
  if (textContent === said) return;
  button.textContent = said;
  button.setAttribute('aria-label', said);
  setTimeout(() => {
    button.textContent = textContent;
    button.setAttribute('aria-label', label);
  }, 1400);
}

async function putOnClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Only pages of this machine, or by TLS, have that clipboard. The older way needs a selection.
    const field = make('textarea', {value: text, className: 'unseen'}), focused = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    focused?.focus();
    return done;
  }
}
