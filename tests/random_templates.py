"""Random Jinja templates from a seed: expressions over all kinds of values, half of them sensible, and
statements around them. What they mean is for Python's Jinja to say."""
import random

VALUES = {
    "s": "Hello World", "e": "", "u": "Grüße, ÉCOLE ß\n日本 🎈", "w": "  two  words\t\n", "l": "a,b,,c", "q": "it's \"q\" \\ <&>",
    "n": 7, "z": 0, "m": -3, "f": 2.5, "g": -0.125, "big": 1e16, "t": True, "x": False, "none": None,
    "a": [3, 1, 2], "c": ["b", "A", "c", "a"], "k": [], "mix": [1, "a", None, True, 2.0, [1], {"k": 1}],
    "d": {"a": 1, "b": "two", "c": None, "items": "own", "k y": [1, 2]}, "o": {},
    "r": [{"role": "user", "n": 2, "p": {"q": "z"}}, {"role": "Assistant", "n": 1}, {"role": "tool", "n": 2, "p": {"q": "y"}}],
}
TEXTS = ["s", "e", "u", "w", "l", "q"]
NUMBERS = ["n", "z", "m", "f", "g", "t", "x", "big"]
LISTS = ["a", "c", "k", "mix", "r"]
DICTS = ["d", "o", "r[0]", "r[-1]"]
LITERALS = {
    "text": ["'a'", "''", "'Ab c'", '"x\\ny"', "'é'", "', '", "' '", "'l'", "'\\u00e9\\t'"],
    "number": ["0", "1", "2", "-1", "3", "10", "1.5", "0.1", "1_000", "2e3"],
    "list": ["[1, 2]", "[]", "['x', 'y', 'x']", "(1, 'a')", "[n, s]", "range(4)", "range(5, 0, -2)", "[[1, 2], [3]]"],
    "dict": ["{}", "{'k': 1, 'v': n}", "dict(a=1, b=s)", "{1: 'one', true: 'yes'}", "dict(d, z=3)"],
}
TEXT_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "trim('H d')", "string", "replace('l', 'L')",
                "replace('l', 'L', 1)", "replace('', '-')", "indent", "indent(2, true)", "indent('> ', first=true, blank=true)",
                "reverse", "center(20)", "default('D', true)"]
LIST_FILTERS = ["list", "reverse|list", "sort", "sort(reverse=true)", "sort(attribute='n')", "sort(case_sensitive=true)", "sort(attribute='n,role')",
                "unique|list", "map('upper')|list", "map('string')|list", "map(attribute='role')|list",
                "map(attribute='p.q', default='-')|list", "select|list", "select('string')|list", "reject('none')|list",
                "select('gt', 1)|list", "selectattr('p')|list", "selectattr('role', 'equalto', 'user')|list",
                "rejectattr('n', 'eq', 2)|list", "batch(2)|list", "batch(2, '-')|list", "groupby('n')", "map('int')|list",
                "map('length')|list", "select('in', [1, 'a'])|list"]
NUMBER_TAILS = ["|int", "|float", "|abs", "|round", "|round(1)", "|round(1, 'floor')", "|int(5)", "|string", "|default(3)"]
TO_ANY = ["|first", "|last", "|min", "|max", "[0]", "[-1]", "[5]", ".0", "|sum", "|length", "|count"]
SLICES = ["[1:]", "[:2]", "[::-1]", "[-2:]", "[::2]", "[1:-1]", "[5:1:-2]", "[:]", "[3:1]"]
TEXT_METHODS = [".strip()", ".lstrip('H ')", ".rstrip()", ".upper()", ".lower()", ".title()", ".capitalize()",
                ".replace('l', '_')", ".replace('l', '_', 1)", ".removeprefix('He')", ".removesuffix('ld')"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable",
         "callable", "true", "false", "odd", "even", "divisibleby 2", "divisibleby(3)", "in [1, 'a', none]", "equalto 7", "eq 'a'",
         "ne 1", "lt 3", "gt(1)", "ge 2", "le 2", "sameas none", "sameas true", "lower", "upper", "not none", "not string"]


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, things):
        return self.random.choice(things)

    def chance(self, probability):
        return self.random.random() < probability

    def any(self, depth):
        if self.chance(0.03):
            return self.pick(["nope", "nope.more", "d.nope", "loop", "none", "s.nope", "a.nope", "d['nope']", "loop.index"])
        return self.pick([self.text, self.number, self.list, self.dict, self.truth])(depth)

    def odd(self, right, depth):
        """Now and then an operand of another kind."""
        return self.any(depth) if self.chance(0.08) else right(depth)

    def sliced(self, right, depth):
        """No constant of another kind: what Jinja computes beforehand is undefined, not an error."""
        return self.pick(["n", "t", "d", "none or n", "nope"]) if self.chance(0.08) else right(depth - 1)

    def text(self, depth):
        if depth <= 0:
            return self.pick(TEXTS + LITERALS["text"])
        text = lambda: self.odd(self.text, depth - 1)
        return self.pick([
            lambda: f"({text()} + {text()})",
            lambda: f"({self.any(depth - 1)} ~ {self.any(depth - 1)})",
            lambda: f"({text()} * {self.pick(['0', '2', '-1'])})",
            lambda: f"{text()}|{self.pick(TEXT_FILTERS)}",
            lambda: f"({text()}){self.pick(TEXT_METHODS)}",
            lambda: f"({self.sliced(self.text, depth)}){self.pick(SLICES)}",
            lambda: f"({text()})[{self.pick(['0', '-1', '2', '99', 'n'])}]",
            lambda: f"{self.odd(self.list, depth - 1)}|join({self.pick(['', repr(', '), 's', 'n'])})",
            lambda: f"({text()}).join({self.odd(self.list, depth - 1)})",
            lambda: f"({self.any(depth - 1)})|tojson{self.pick(['', '(indent=2)', '(separators=(%r, %r))' % (',', ':'), '(ensure_ascii=true)', '(sort_keys=true)'])}",
            lambda: f"({self.any(depth - 1)})|string",
            lambda: f"({self.text(depth - 1)} if {self.truth(depth - 1)} else {self.text(depth - 1)})",
            lambda: f"({self.text(depth - 1)} if {self.truth(depth - 1)})",
            lambda: f"({self.pick(['d', 'r[1]', 'o'])}.get({self.text(0)}, {self.text(0)}))",
            lambda: f"('%s-%s' % ({self.any(depth - 1)}, {self.any(0)}))",
            lambda: f"('%05.1f|%d' % ({self.number(0)}, {self.number(0)}))",
        ])()

    def number(self, depth):
        if depth <= 0:
            return self.pick(NUMBERS + LITERALS["number"])
        number = lambda: self.odd(self.number, depth - 1)
        return self.pick([
            lambda: f"({number()} {self.pick(['+', '-', '*', '/', '//', '%'])} {number()})",
            lambda: f"({self.pick(['n', '2', 'f', 'm', '0'])} ** {self.pick(['2', '0', '3', '-1', 'z'])})",
            lambda: f"(-{number()})",
            lambda: f"({number()}){self.pick(NUMBER_TAILS)}",
            lambda: f"({self.odd(self.list, depth - 1)})|length",
            lambda: f"({self.odd(self.text, depth - 1)})|{self.pick(['length', 'int', 'float', 'int(9)', 'int(base=16)', 'float(1.5)'])}",
            lambda: f"({self.odd(self.text, depth - 1)}).{self.pick(['find', 'count', 'rfind'])}({self.text(0)})",
            lambda: f"{self.pick(LISTS)}|sum{self.pick(['', '(start=2)', '(attribute=%r)' % 'n'])}",
        ])()

    def list(self, depth):
        if depth <= 0:
            return self.pick(LISTS + LITERALS["list"])
        return self.pick([
            lambda: f"{self.odd(self.list, depth - 1)}|{self.pick(LIST_FILTERS)}",
            lambda: f"({self.odd(self.list, depth - 1)} + {self.odd(self.list, depth - 1)})",
            lambda: f"({self.sliced(self.list, depth)}){self.pick(SLICES)}",
            lambda: f"[{self.any(depth - 1)}, {self.any(0)}]",
            lambda: f"({self.any(depth - 1)}, {self.any(0)})",
            lambda: f"({self.odd(self.text, depth - 1)}).{self.pick(['split()', 'split(%r)' % ',', 'rsplit(%r, 1)' % ' ', 'split(none, 1)', 'split(%r, 1)' % 'l', 'splitlines()', 'rsplit(maxsplit=1)', 'partition(%r)' % 'l', 'rpartition(%r)' % ' '])}",
            lambda: f"({self.odd(self.text, depth - 1)})|list",
            lambda: f"({self.odd(self.dict, depth - 1)})|{self.pick(['list', 'dictsort', 'items|list', 'dictsort(by=%r)' % 'value', 'dictsort(reverse=true)'])}",
            lambda: f"({self.odd(self.dict, depth - 1)}).{self.pick(['keys()', 'values()', 'items()'])}{self.pick(['', '|list'])}",
        ])()

    def dict(self, depth):
        if depth <= 0:
            return self.pick(DICTS + LITERALS["dict"])
        return self.pick([lambda: f"{{{self.text(0)}: {self.any(depth - 1)}, 'k': {self.any(0)}}}", lambda: self.pick(DICTS)])()

    def truth(self, depth):
        if depth <= 0:
            return self.pick(["t", "x", "true", "false", "none", "n", "s", "e", "k"])
        kind = self.pick([self.text, self.number, self.list, self.any])
        return self.pick([
            lambda: f"({kind(depth - 1)} {self.pick(['==', '!='])} {kind(depth - 1)})",
            lambda: f"({kind(depth - 1)} {self.pick(['<', '<=', '>', '>='])} {kind(depth - 1)})",
            lambda: f"({self.number(0)} < {self.number(depth - 1)} <= {self.number(0)})",
            lambda: f"({self.any(depth - 1)} {self.pick(['in', 'not in'])} {self.pick([self.list, self.text, self.dict])(depth - 1)})",
            lambda: f"({self.any(depth - 1)} {self.pick(['and', 'or'])} {self.any(depth - 1)})",
            lambda: f"(not {self.any(depth - 1)})",
            lambda: f"({self.any(depth - 1)} is {self.pick(TESTS)})",
            lambda: f"({self.text(depth - 1)}).{self.pick(['startswith', 'endswith'])}({self.text(0)})",
            lambda: f"({self.text(depth - 1)}).{self.pick(['isdigit()', 'isspace()', 'isupper()', 'islower()', 'isalpha()'])}",
        ])()

    def item(self, depth):
        """What {{ }} writes."""
        return self.pick([self.any, self.text, self.number, self.list])(depth) if self.chance(0.9) else \
            f"({self.list(depth)}){self.pick(TO_ANY)}"

    def tag(self, inside):
        return self.pick(["{%", "{%", "{%-", "{%+"]) + f" {inside} " + self.pick(["%}", "%}", "-%}", "+%}"])

    def output(self):
        return self.pick(["{{", "{{-"]) + f" {self.item(2)} " + self.pick(["}}", "-}}"])

    def data(self):
        return self.pick(["", " ", "\n", "  \n  ", "x", " y\n", "\r\n", "\t", "é ", "{# note #}", " {#- note -#} \n", "{{ '{{' }}",
                          "{% raw %} {{ a }}\n {% endraw %}\n"])

    def body(self, depth, in_loop=False):
        return "".join(self.data() + self.statement(depth, in_loop) for _ in range(self.random.randint(1, 3))) + self.data()

    def statement(self, depth, in_loop=False):
        if depth <= 0:
            return self.output()
        body = lambda loop=in_loop: self.body(depth - 1, loop)
        tag = self.tag
        choices = [
            self.output,
            lambda: tag(f"if {self.any(2)}") + body() + self.pick(["", tag(f"elif {self.truth(1)}") + body()]) +
            self.pick(["", tag("else") + body()]) + tag("endif"),
            lambda: tag(f"for i in {self.odd(self.list, 1)}{self.pick(['', '', f' if {self.truth(1)}', ' if i'])}") +
            self.pick(["{{ i }}", "{{ loop.index }}/{{ loop.length }}", "{{ loop.first }}{{ loop.last }}", "{{ loop.previtem }}",
                       "{{ loop.nextitem is defined }}", "{{ loop.cycle('o', 'e') }}", "{{ loop.revindex0 }}",
                       "{{ loop.changed(i) }}"]) +
            body(True) + self.pick(["", "", tag("else") + body()]) + tag("endfor"),
            lambda: tag(f"for key, value in {self.pick(['d', 'o', 'r[0]'])}.items()") + "{{ key }}={{ value }}" + body(True) + tag("endfor"),
            lambda: tag(f"set {self.pick(['v', 'v2'])} = {self.any(2)}") + "{{ v }}{{ v2 }}",
            lambda: tag("set v") + body() + tag("endset") + "{{ v|trim }}",
            lambda: tag("set ns = namespace(i=0, v='')") + tag(f"for i in {self.list(0)}") + tag("set ns.i = ns.i + 1") +
            tag("set ns.v = ns.v ~ i") + tag("endfor") + "{{ ns.i }}{{ ns.v }}",
            lambda: tag(f"macro mac(p1, p2={self.any(1)})") + "{{ p1 }}:{{ p2 }}" + body(False) +
            tag("endmacro") + "{{ mac(" + self.pick(["1", "s, n", "p1=n", "p2=2", "", "1, 2, 3", "1, zz=3"]) + ") }}",
            lambda: tag("macro mac(p1)") + "[{{ p1 }}{{ caller(p1) }}]" + tag("endmacro") + tag(f"call(p3) mac({self.any(1)})") + "{{ p3 }}" +
            body(False) + tag("endcall"),
            lambda: tag(f"filter {self.pick(['upper', 'trim', 'replace(%r, %r)|indent' % ('e', 'E')])}") + body(False) + tag("endfilter"),
            lambda: tag(f"with y1 = {self.any(1)}, y2 = n") + "{{ y1 }}{{ y2 }}" + body() + tag("endwith"),
            lambda: tag("generation") + body(False) + tag("endgeneration"),
        ]
        if in_loop:
            choices += [lambda: tag(f"if {self.truth(1)}") + tag(self.pick(["break", "continue"])) + tag("endif")] * 2
        return self.pick(choices)()

    def template(self):
        return "{{ " + self.item(3) + " }}" if self.chance(0.5) else self.body(2)
