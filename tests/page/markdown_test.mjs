// The page's Markdown as a tree: what models write, what a stream has of it half-way, and texts that mean harm.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {parseInline, parseMarkdown, safeUrl} from '../../src/server/page/markdown.mjs';

// The tree as a short text, to compare.
function inlineText(parts) {
  return parts.map((part) => {
    if (typeof part === 'string') return part;
    if (part.type === 'break') return '↵';
    if (part.type === 'code') return `code(${part.text})`;
    if (part.type === 'link') return `link(${part.url} ${inlineText(part.inline)})`;
    return `${part.type}(${inlineText(part.inline)})`;
  }).join('');
}
function blockText(block) {
  switch (block.type) {
    case 'paragraph': return `p(${inlineText(block.inline)})`;
    case 'heading': return `h${block.level}(${inlineText(block.inline)})`;
    case 'code': return `code[${block.language}${block.closed ? '' : '…'}](${block.text})`;
    case 'quote': return `quote(${block.blocks.map(blockText).join(' ')})`;
    case 'list': return `${block.ordered ? `ol${block.start}` : 'ul'}(${block.items.map((item) => item.map(blockText).join(' ')).join(' | ')})`;
    case 'table': return `table(${block.head.map(inlineText)} / ${block.rows.map((row) => row.map(inlineText)).join(' / ')})`;
    default: return block.type;
  }
}
const tree = (text) => parseMarkdown(text).map(blockText).join(' ');
const inline = (text) => inlineText(parseInline(text));

test('paragraphs, headings, rules and line breaks', () => {
  assert.equal(tree('# A *b*\n\ntext\nmore  \n\n---\n\n### C ###\nnext'), 'h1(A emphasis(b)) p(text↵more) rule h3(C) p(next)');
  assert.equal(tree('####### seven'), 'p(####### seven)');
  assert.equal(tree('#hash'), 'p(#hash)');
  assert.equal(tree('a\r\nb'), 'p(a↵b)');
  assert.equal(tree(''), '');
  assert.equal(tree('\n\n  \n'), '');
});

test('code blocks, closed or not yet', () => {
  assert.equal(tree('```python\nx = 1\n\n# no heading\n```\nafter'), 'code[python](x = 1\n\n# no heading) p(after)');
  assert.equal(tree('```\nhalf'), 'code[…](half)');
  assert.equal(tree('```'), 'code[…]()');
  assert.equal(tree('````\n```\n````'), 'code[](```)');
  assert.equal(tree('~~~ js extra\na\n~~~'), 'code[js](a)');
  assert.equal(tree('text\n```c\nint a;\n```'), 'p(text) code[c](int a;)');
});

test('lists, nested and numbered', () => {
  assert.equal(tree('- a\n- b\n  - c\n  - d\n- e'), 'ul(p(a) | p(b) ul(p(c) | p(d)) | p(e))');
  assert.equal(tree('3. a\n4. b'), 'ol3(p(a) | p(b))');
  assert.equal(tree('1. a\n\n2. b\n\ntext'), 'ol1(p(a) | p(b)) p(text)');
  assert.equal(tree('* a\n  goes on\n\n  second\n* b'), 'ul(p(a↵goes on) p(second) | p(b))');
  assert.equal(tree('- a\n1. b'), 'ul(p(a)) ol1(p(b))');
  assert.equal(tree('- ```\n  code\n  ```\n- b'), 'ul(code[](code) | p(b))');
  assert.equal(tree('-'), 'ul()');
  assert.equal(tree('2024 was\n- a'), 'p(2024 was) ul(p(a))');
});

test('quotes and tables', () => {
  assert.equal(tree('> a\n> - b\n\nc'), 'quote(p(a) ul(p(b))) p(c)');
  assert.equal(tree('| a | b |\n|---|:-:|\n| 1 | `x` |\n| 2 |\n\nt'), 'table(a,b / 1,code(x) / 2,) p(t)');
  assert.equal(tree('a | b\n--|--\n1 | 2 | 3'), 'table(a,b / 1,2)');
  assert.equal(tree('a | b\nno line'), 'p(a | b↵no line)');
  assert.equal(tree('| a |\n|'), 'p(| a |↵|)');
  const [table] = parseMarkdown('|a|b|c|\n|:-|:-:|-:|\n|1|2|3|');
  assert.deepEqual(table.align, ['start', 'center', 'end']);
  assert.equal(tree('|a\\|b|c|\n|--|--|'), 'table(a|b,c / )');
});

test('emphasis, code and escapes within a line', () => {
  assert.equal(inline('**a** *b* __c__ _d_ ~~e~~ `f`'), 'strong(a) emphasis(b) strong(c) emphasis(d) deleted(e) code(f)');
  assert.equal(inline('**a *b* c**'), 'strong(a emphasis(b) c)');
  assert.equal(inline('2 * 3 * 4'), '2 * 3 * 4');
  assert.equal(inline('snake_case_name and __init__'), 'snake_case_name and strong(init)');
  assert.equal(inline('`` a ` b `` `**no**`'), 'code(a ` b) code(**no**)');
  assert.equal(inline('\\*a\\* \\q \\'), '*a* \\q \\');
  assert.equal(inline('**half'), '**half');
  assert.equal(inline('`half'), '`half');
});

test('links go to http and https alone', () => {
  assert.equal(inline('[a **b**](https://x.org/y?z=1)'), 'link(https://x.org/y?z=1 a strong(b))');
  assert.equal(inline('[a](https://x.org "title")'), 'link(https://x.org/ a)');
  assert.equal(inline('see https://x.org/a_b, or <http://y.org>.'), 'see link(https://x.org/a_b https://x.org/a_b), or link(http://y.org/ http://y.org).');
  assert.equal(inline('![alt](https://x.org/i.png)'), 'link(https://x.org/i.png alt)');
  for (const bad of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc', '//x.org', '/path', '#a', ' javascript:x',
                     'java\nscript:x', 'https:/\\x', '']) {
    assert.equal(safeUrl(bad), null, bad);
    assert.equal(parseInline(`[a](${bad})`).some((part) => part.type === 'link'), false, bad);
  }
});

test('HTML is text', () => {
  assert.equal(tree('<img src=x onerror=alert(1)> <b>x</b>\n<script>alert(1)</script>'),
               'p(<img src=x onerror=alert(1)> <b>x</b>↵<script>alert(1)</script>)');
});

test('every beginning of an answer has a tree, and the whole text is in it', () => {
  const text = '# T\n\n- a **b**\n  1. `c`\n\n| x | y |\n|---|---|\n| [l](https://x.org) | _z_ |\n\n> q\n\n```js\nlet a;\n```\nend ~~d~~ \\* ![i](https://x.org/p)';
  for (let length = 0; length <= text.length; ++length) {
    const blocks = parseMarkdown(text.slice(0, length));
    assert.equal(blocks.map((block) => block.source).join('').replace(/\s/g, ''), text.slice(0, length).replace(/\s/g, ''));
  }
});

// Quadratic work on a text this long would not end within any patience.
test('harmful texts come to an end', () => {
  const pieces = ['*', '**', '_', '`', '[', '](', '[](', '![', '> ', '- ', '|', '\\', '<', 'http://', '# ', '~~', '*a ', '**a', '_a', '`a``', ' ', '\n', '1. ', '|-', '\t', '- \n'];
  for (const piece of pieces) {
    const text = piece.repeat(Math.ceil(60_000 / piece.length));
    assert.ok(parseMarkdown(text));
    parseMarkdown(`a ${text}`);
    parseMarkdown(`# ${text}b`);
  }
});

test('random texts neither fail nor make links that are not safe', () => {
  let seed = 7;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const words = ['a', 'B c', ' ', '\n', '\n\n', '*', '**', '_', '`', '```', '[', ']', '(', ')', '](', 'https://x.org', 'javascript:x', '|', '---', '- ', '  ', '1. ', '> ', '#', '\\', '<', '>', '~~', '!', 'é😀'];
  const links = (value) => {
    if (Array.isArray(value)) return value.forEach(links);
    if (value === null || typeof value !== 'object') return;
    if (value.type === 'link') assert.match(value.url, /^https?:\/\//);
    Object.values(value).forEach(links);
  };
  for (let round = 0; round < 3000; ++round) links(parseMarkdown(Array.from({length: random(40)}, () => words[random(words.length)]).join('')));
});
