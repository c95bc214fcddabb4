"""Renders a chat template as transformers' apply_chat_template does, with Debian's python3-jinja2."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)
NOW_PARTS = [2025, 3, 9, 14, 5, 7, 0, 67]  # with the weekday from Sunday and the day of the year from 0


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def make_environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


class PythonTemplate:
    """What a template renders as: (text, None) or (None, error)."""

    def __init__(self, source, environment):
        try:
            self.template, self.error = environment.from_string(source), None
        except Exception as error:  # whatever Python raises, the other program must fail too
            self.template, self.error = None, f"{type(error).__name__}: {error}"

    def render(self, values):
        if self.template is None:
            return None, self.error
        try:
            return self.template.render(**values), None
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
