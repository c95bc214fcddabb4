"""Text out of HTML pages and manual pages: what a reader sees, without menus and markup."""
import html
import re

_REQUEST = re.compile(r"[.']\s*([A-Za-z]+)\s*(.*)")
_FONTS = ("B", "I", "BR", "IR", "RB", "RI", "BI", "IB", "SM", "SB")
_BREAKS = ("PP", "P", "LP", "Pp", "TP", "IP", "HP", "sp", "br")
_ESCAPES = {r"\-": "-", r"\(aq": "'", r"\(co": "(c)", r"\&": "", r"\e": "\\", r"\~": " ", r"\ ": " ", r"\|": "",
            r"\^": "", r"\(bu": "*", r"\(em": "-", r"\(en": "-", r"\(lq": '"', r"\(rq": '"', r"\(Bq": '"',
            r"\(Fo": "«", r"\(Fc": "»", r"\(dq": '"', r"\(oq": "'", r"\(cq": "'", r"\(ha": "^", r"\(ti": "~"}


def _squeeze(text):
    return re.sub(r"\n[ \t]*\n\s*\n+", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


def from_html(page):
    page = re.sub(r"(?is)<(script|style|head|nav|header|footer|form|svg)\b.*?</\1>|<!--.*?-->", "", page)
    main = re.search(r'(?s)<(?:div|main)[^>]*(?:role="main"|class="body")[^>]*>(.*)', page)
    page = main.group(1) if main else page
    # Line ends mean something only inside <pre>.
    parts = re.split(r"(?is)(<pre\b.*?</pre>)", page)
    parts[::2] = [re.sub(r"\s+", " ", part) for part in parts[::2]]
    page = re.sub(r"(?i)</(p|div|h\d|pre|table|ul|ol|dl)>|<pre\b[^>]*>", "\n\n", "".join(parts))
    page = re.sub(r"(?i)</(li|tr|dt|dd)>|<br ?/?>", "\n", page)
    text = html.unescape(re.sub(r"<[^>]*>", "", page)).replace("¶", "").replace("\xa0", " ")
    return _squeeze(re.sub(r"(?m)^ +(?=\S)(?! )", lambda m: m.group() if len(m.group()) > 1 else "", text))


def _without_escapes(line):
    line = re.sub(r"\\f(?:[A-Z0-9]|\([A-Z]{2}|\[[^\]]*\])|\\s[-+]?\d|\\m\[[^\]]*\]", "", line)
    for escape, character in _ESCAPES.items():
        line = line.replace(escape, character)
    return re.sub(r"\\\[[^\]]*\]|\\\(..|\\[acuhvwk]", "", line)


def from_roff(page):
    lines = []
    for line in page.splitlines():
        if line.startswith(('.\\"', "'\\\"")):
            continue
        request = _REQUEST.match(line) if line[:1] in ".'" else None
        if request is None:
            lines.append("" if line[:1] in ".'" else _without_escapes(line))
        elif request.group(1) in ("SH", "SS", "TH"):
            lines.append("\n" + _without_escapes(request.group(2).replace('"', "")) + "\n")
        elif request.group(1) in _FONTS:
            lines.append(_without_escapes(request.group(2).replace('"', "")))
        elif request.group(1) in _BREAKS:
            lines.append("")
    return _squeeze("\n".join(lines))


def from_text(page):
    return page.replace("\r\n", "\n").strip()


FORMS = {"html": from_html, "roff": from_roff, "text": from_text}
