// Markdown as models write it, as a tree of plain values. Pure; what it looks like is
// markdown_view.mjs's part. HTML is text here. Every text has a tree, and takes time in proportion
// to its length, as it may be a model's.
//
// Blocks: {type: 'paragraph'|'heading'|'quote'|'list'|'code'|'table'|'rule', source, ...}.
// Inline: a string, or {type: 'strong'|'emphasis'|'deleted'|'code'|'link'|'break', ...}.

const kDeepest = 12;

export function parseMarkdown(text) {
  return parseBlocks(text.replace(/\r\n?/g, '\n').split('\n'), 0);
}

const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const kHeading = /^ {0,3}(#{1,6})(?:\s|$)/;
const kRule = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const kItem = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+(.*)|)$/;
const kQuote = /^ {0,3}> ?/;
const kDelimiters = /^\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?\|?\s*$|^\s*\|?\s*:?-+:?\s*\|\s*$/;

function parseBlocks(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === '') {
      ++at;
      continue;
    }
    const [block, next] = parseBlock(lines, at, depth);
    blocks.push({...block, source: lines.slice(at, next).join('\n')});
    at = next;
  }
  return blocks;
}

function parseBlock(lines, at, depth) {
  const line = lines[at];
  const fence = line.match(kFence);
  if (fence) return parseCode(lines, at, fence);
  const heading = line.match(kHeading);
  if (heading) return [{type: 'heading', level: heading[1].length, inline: parseInline(headingText(line, heading[0]))}, at + 1];
  if (kRule.test(line)) return [{type: 'rule'}, at + 1];
  if (depth < kDeepest && kQuote.test(line)) return parseQuote(lines, at, depth);
  if (depth < kDeepest && kItem.test(line)) return parseList(lines, at, depth);
  if (beginsTable(lines, at)) return parseTable(lines, at);
  return parseParagraph(lines, at, depth);
}

// Without the marks before it, and those that may close it.
function headingText(line, marks) {
  const text = line.slice(marks.length).trim();
  const end = text.lastIndexOf(' ');
  return /^#+$/.test(text.slice(end + 1)) ? text.slice(0, Math.max(end, 0)).trimEnd() : text;
}

// A fence that is not closed yet holds all that has come.
function parseCode(lines, at, fence) {
  const mark = fence[1], close = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !close.test(lines[end])) ++end;
  const closed = end < lines.length;
  return [{type: 'code', language: fence[2], text: lines.slice(at + 1, end).join('\n'), closed}, closed ? end + 1 : end];
}

function parseQuote(lines, at, depth) {
  let end = at;
  while (end < lines.length && kQuote.test(lines[end])) ++end;
  const inner = lines.slice(at, end).map((line) => line.replace(kQuote, ''));
  return [{type: 'quote', blocks: parseBlocks(inner, depth + 1)}, end];
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

// Items are as deep as their mark; what is indented more belongs to the item above it.
function parseList(lines, at, depth) {
  const first = lines[at].match(kItem);
  const indent = first[1].length, ordered = /\d/.test(first[2]);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const item = lines[end].match(kItem);
    if (!item || item[1].length < indent || item[1].length > indent + 3) break;
    if (/\d/.test(item[2]) !== ordered || kRule.test(lines[end])) break;
    const inner = [item[3] ?? ''];
    const inside = item[1].length + 2;
    for (++end; end < lines.length; ++end) {
      const line = lines[end];
      if (line.trim() === '') {
        let next = end + 1;
        while (next < lines.length && lines[next].trim() === '') ++next;
        if (next === lines.length || indentOf(lines[next]) < inside) break;
        inner.push('');
        end = next - 1;
      } else if (indentOf(line) >= inside) {
        inner.push(line.slice(inside));
      } else if (kItem.test(line) || startsBlock(line)) {
        break;
      } else {
        inner.push(line);  // the paragraph goes on
      }
    }
    items.push(parseBlocks(inner, depth + 1));
    // Between two items an empty line may stand.
    let next = end;
    while (next < lines.length && lines[next].trim() === '') ++next;
    if (next > end && next < lines.length && kItem.test(lines[next]) && indentOf(lines[next]) >= indent) end = next;
  }
  return [{type: 'list', ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, items}, end];
}

function startsBlock(line) {
  return kFence.test(line) || kHeading.test(line) || kRule.test(line) || kQuote.test(line);
}

function parseParagraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== '' && !startsBlock(lines[end]) && !beginsTable(lines, end) &&
         !(depth < kDeepest && kItem.test(lines[end]))) {
    ++end;
  }
  const text = lines.slice(at, end).map((line) => line.trimStart()).join('\n').trimEnd();
  return [{type: 'paragraph', inline: parseInline(text)}, end];
}

function cellsOf(line) {
  const cells = [''];
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  for (let i = 0; i < inner.length; ++i) {
    if (inner[i] === '\\' && inner[i + 1] === '|') cells[cells.length - 1] += inner[++i];
    else if (inner[i] === '|') cells.push('');
    else cells[cells.length - 1] += inner[i];
  }
  return cells.map((cell) => cell.trim());
}

function beginsTable(lines, at) {
  return at + 1 < lines.length && lines[at].includes('|') && lines[at + 1].length < 4096 && kDelimiters.test(lines[at + 1]) &&
      cellsOf(lines[at]).length === cellsOf(lines[at + 1]).length;
}

function parseTable(lines, at) {
  const head = cellsOf(lines[at]);
  const align = cellsOf(lines[at + 1]).map((cell) => {
    if (cell.endsWith(':')) return cell.startsWith(':') ? 'center' : 'end';
    return 'start';
  });
  const rows = [];
  let end = at + 2;
  for (; end < lines.length && lines[end].includes('|'); ++end) {
    const cells = cellsOf(lines[end]).slice(0, head.length);
    while (cells.length < head.length) cells.push('');
    rows.push(cells.map(parseInline));
  }
  return [{type: 'table', align, head: head.map(parseInline), rows}, end];
}

// Only what a browser may be sent to by a text that nobody has read.
export function safeUrl(text) {
  if (!/^https?:\/\//i.test(text) || /[\s<>"\\]/.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}

const kPunctuation = /[!-/:-@[-`{-~]/;
const kMarks = [['**', 'strong'], ['__', 'strong'], ['~~', 'deleted'], ['*', 'emphasis'], ['_', 'emphasis']];

export function parseInline(text, depth = 0) {
  const parts = [];
  const never = new Set();  // what was searched for from some place to the end, and is not there
  let plain = '';
  const flush = () => {
    if (plain !== '') parts.push(plain);
    plain = '';
  };
  const add = (node) => {
    flush();
    parts.push(node);
  };
  const find = (what, from, good = () => true) => {
    if (never.has(what)) return -1;
    for (let at = text.indexOf(what, from); at >= 0; at = text.indexOf(what, at + 1)) {
      if (good(at)) return at;
    }
    never.add(what);
    return -1;
  };

  let i = 0;
  while (i < text.length) {
    const c = text[i];
    if (c === '\n') {
      plain = plain.trimEnd();
      add({type: 'break'});
      ++i;
    } else if (c === '\\' && i + 1 < text.length && kPunctuation.test(text[i + 1])) {
      plain += text[i + 1];
      i += 2;
    } else if (c === '`') {
      const ticks = text.slice(i).match(/^`+/)[0];
      const end = find(ticks, i + ticks.length, (at) => text[at - 1] !== '`' && text[at + ticks.length] !== '`');
      if (end < 0) {
        plain += ticks;
        i += ticks.length;
      } else {
        const code = text.slice(i + ticks.length, end).replace(/\n/g, ' ');
        add({type: 'code', text: /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code});
        i = end + ticks.length;
      }
    } else if (c === '[' || (c === '!' && text[i + 1] === '[')) {
      const link = depth < kDeepest ? linkAt(text, c === '!' ? i + 1 : i) : null;
      if (link) {
        add({type: 'link', url: link.url, inline: parseInline(link.label, depth + 1)});
        i = link.end;
      } else {
        plain += c;
        ++i;
      }
    } else if (c === 'h' || c === 'H' || c === '<') {
      const url = bareUrlAt(text, i);
      if (url) {
        add({type: 'link', url: url.url, inline: [url.label]});
        i = url.end;
      } else {
        plain += c;
        ++i;
      }
    } else {
      const mark = depth < kDeepest && marksAt(text, i, find);
      if (mark) {
        add({type: mark.type, inline: parseInline(mark.inner, depth + 1)});
        i = mark.end;
      } else {
        plain += c;
        ++i;
      }
    }
  }
  flush();
  return parts;
}

const kWord = /[\p{L}\p{N}]/u;

function marksAt(text, i, find) {
  for (const [mark, type] of kMarks) {
    if (!text.startsWith(mark, i)) continue;
    const from = i + mark.length;
    if (from >= text.length || /\s/.test(text[from])) return null;
    if (mark[0] === '_' && i > 0 && kWord.test(text[i - 1])) return null;
    const end = find(mark, from + 1, (at) => {
      if (/\s/.test(text[at - 1]) || text[at - 1] === '\\') return false;
      const after = text[at + mark.length] ?? '';
      if (mark[0] === '_' && kWord.test(after)) return false;
      return mark.length === 2 || (after !== mark && text[at - 1] !== mark);
    });
    if (end > 0) return {type, inner: text.slice(from, end), end: end + mark.length};
  }
  return null;
}

// Labels and addresses are searched for within this length, so that a text of brackets takes no longer.
const kLongestLink = 2000;

function linkAt(text, open) {
  const [label, ...rest] = text.slice(open + 1, open + 1 + kLongestLink).split('](', 2);
  if (rest.length === 0 || label.includes('[')) return null;
  const begin = open + 1 + label.length + 2;
  const length = text.slice(begin, begin + kLongestLink).indexOf(')');
  if (length < 0) return null;
  const target = text.slice(begin, begin + length).trim().split(/\s/, 1)[0].replace(/^<(.*)>$/, '$1');
  const url = safeUrl(target);
  return url && {url, label, end: begin + length + 1};
}

function bareUrlAt(text, i) {
  const angled = text[i] === '<';
  const begin = angled ? i + 1 : i;
  if (!angled && i > 0 && kWord.test(text[i - 1])) return null;
  if (!/^https?:\/\//i.test(text.slice(begin, begin + 8))) return null;
  let label = text.slice(begin, begin + kLongestLink).match(/^[^\s<>"`]+/)[0];
  if (!angled) label = label.replace(/[.,;:!?)\]'*_~]+$/, '');  // what ends a sentence
  if (angled && text[begin + label.length] !== '>') return null;
  const url = safeUrl(label);
  return url && {url, label, end: begin + label.length + (angled ? 1 : 0)};
}
