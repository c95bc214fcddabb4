#!/usr/bin/env python3
"""What a live server's /metrics tells: every figure that requests should move does move, Prometheus' own promtool
finds nothing to say of the page, and what dashboard and alerts ask for is there.

usage: metrics_test.py TROUPE [unittest arguments]
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error

import serve_test
from serve_test import Server

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
TINY = ROOT / "models/tiny-qwen2moe-q8_0.gguf"
SERIES = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="([^"]*)"')
# A name in an expression, and its labels; behind "by" and before a bracket there are none.
SELECTOR = re.compile(r"\b((?:troupe|process)_\w+)(?:\{([^}]*)\})?")
# What the requests below move only if time has it so, or not at all; serve_metrics_test holds these to their values.
STILL = {'troupe_tier_expert_asks_total{tier="disk_low_copy"}', 'troupe_tier_expert_asks_total{tier="elsewhere"}',
         'troupe_tier_expert_asks_total{tier="loading"}',
         'troupe_tier_expert_asks_total{tier="card"}',  # gpu_command_test.py's
         "troupe_card_rows_total", "troupe_card_copies_total", "troupe_card_failures_total",
         'troupe_inexact_total{kind="low_copy"}', 'troupe_inexact_total{kind="peer_bf16"}',
         'troupe_inexact_total{kind="peer_q8"}', 'troupe_inexact_total{kind="grouped"}', "troupe_prefix_cache_given_up_tokens_total",
         "troupe_experts_verified_total",  # no checksums lie beside this model; command_line_test has one with
         "troupe_failed_passes_total", "troupe_abandoned_passes_total", 'troupe_answers_total{end="failed"}',
         'troupe_prefetches_total{end="late"}', 'troupe_prefetches_total{end="cancelled"}',
         'troupe_prefetches_total{end="useful"}', 'troupe_prefetches_total{end="wasted"}',
         "troupe_needed_loads_total",
         *(f'troupe_predicted_loads_total{{known="{known}"}}' for known in ("named", "likely", "in_time")),
         *(f'troupe_{name}{{layers_ahead="{ahead}",{label}}}' for ahead in range(1, 6) for name, label in (
             ("predicted_loads_by_distance_total", 'odds="likely"'), ("predicted_loads_by_distance_total", 'odds="unlikely"'),
             ("likely_guesses_total", 'came="true"'), ("likely_guesses_total", 'came="false"'))),
         # Answers that may lose quality have no drafts.
         'troupe_drafted_tokens_total{end="accepted"}', 'troupe_drafted_tokens_total{end="rejected"}',
         "troupe_draft_checks_total", "troupe_drafting_seconds_total", "troupe_draft_rest_passes_total",
         *(f'troupe_drafter_tokens_total{{drafter="{drafter}",end="{end}"}}' for end in ("accepted", "rejected")
           for drafter in ("expected", "lookup", "grammar", "control", "offered", "model", "resident", "head")),
         'troupe_draft_reads_total{end="used"}', 'troupe_draft_reads_total{end="unused"}',
         'troupe_http_ended_total{why="timed_out"}', 'troupe_http_ended_total{why="too_slow"}',
         'troupe_http_ended_total{why="no_room"}', 'troupe_http_ended_total{why="made_way"}',
         'troupe_http_ended_total{why="refused"}', 'troupe_http_ended_total{why="cut_off"}',
         'troupe_http_ended_total{why="slow_body"}', "troupe_http_turned_away_total", "troupe_http_overtook_total",
         "troupe_heap_returned_bytes_total",  # once a minute
         # reload_test.py's
         *(f'troupe_reloads_total{{result="{result}"}}' for result in ("done", "refused", "undone"))}


def page_of(server):
    with server.open("/metrics") as response:
        return response.read().decode()


def values_of(page):
    """By series, as it is written."""
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
            if line and not line.startswith("#")}


def promtool(*arguments, text=None):
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def refused(server, path, **more):
    try:
        server.open(path, **more).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    return None


def use(server):
    """Requests of every kind, answered and refused."""
    body = {"prompt": "The kernel " * 60, "max_tokens": 24, "temperature": 0.8, "seed": 7, "ignore_eos": True}
    for _ in range(2):
        server.ask("/v1/completions", body)
    list(server.stream("One two three", 60))
    server.ask("/v1/completions", {"prompt": "The", "max_tokens": 8, "grammar": "root ::= [a-z ]+"})
    hello = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    for path in ("/v1/chat/completions", "/v1/messages"):
        server.ask(path, hello)
    server.ask("/v1/responses", {"input": "Hello", "max_output_tokens": 16})
    server.ask("/v1/messages/count_tokens", {"messages": hello["messages"]})
    tokens = server.ask("/tokenize", {"content": "Hello"})
    server.ask("/detokenize", tokens)
    for path in ("/v1/models", "/props", "/health"):
        server.ask(path)
    server.open("/").close()
    stream = server.stream("The kernel", 900)  # left in the middle
    next(stream)
    stream.close()


class Metrics(unittest.TestCase):
    def test_every_figure_moves_with_what_it_counts(self):
        with Server("--slots", 40, "--parallel", 2, "--queue", 0, "--ctx", 1024, "--substitute", "smoe+drop:rho=1") as server:
            before = values_of(page_of(server))
            use(server)
            with socket.create_connection(("127.0.0.1", server.port), 30) as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
                self.assertIn(b" 413 ", client.recv(100))
            self.assertEqual(refused(server, "/none"), 404)
            self.assertEqual(refused(server, "/v1/completions"), 405)
            self.assertEqual(refused(server, "/v1/completions", body={"prompt": 5}), 400)
            self.assertEqual(refused(server, "/v1/models", headers={"Host": "evil.example"}), 403)
            busy = [server.stream(prompt, 900) for prompt in ("a", "b")]
            for stream in busy:
                next(stream)
            self.assertEqual(refused(server, "/v1/completions", body={"prompt": "c"}), 429)
            for stream in busy:
                for _ in stream:
                    pass
            unknown = {"input": "Hello", "max_output_tokens": 1, "tools": [{"type": "computer"}]}
            server.ask("/v1/responses", unknown)
            for _ in range(600):  # the client that left is noticed some passes later
                after = values_of(page_of(server))
                if after.get('troupe_requests_total{endpoint="/v1/completions",status="499"}'):
                    break
            for endpoint, status, count in (
                    ("/v1/completions", 200, 6), ("/v1/completions", 400, 1), ("/v1/completions", 405, 1),
                    ("/v1/completions", 413, 1), ("/v1/completions", 429, 1), ("/v1/completions", 499, 1),
                    ("/v1/chat/completions", 200, 1), ("/v1/messages", 200, 1), ("/v1/responses", 200, 2),
                    ("/v1/messages/count_tokens", 200, 1), ("/tokenize", 200, 1), ("/detokenize", 200, 1),
                    ("/v1/models", 200, 1), ("/v1/models", 403, 1), ("/props", 200, 1), ("/health", 200, 1),
                    ("/", 200, 1), ("other", 404, 1)):
                name = f'troupe_requests_total{{endpoint="{endpoint}",status="{status}"}}'
                self.assertEqual(after.get(name), count, name)
            counters = [name for name in after if re.search(r"_(total|count|sum)(\{|$)", name)
                        and not name.startswith("troupe_requests_total")]
            self.assertGreater(len(counters), 50)
            for name in counters:
                if name not in STILL:
                    self.assertGreater(after[name], before.get(name, 0), name)
            for layer in range(8):
                for found in ("hit", "miss"):
                    self.assertIn(f'troupe_layer_expert_asks_total{{layer="{layer}",found="{found}"}}', after)
            pages = [name for name in after if name.startswith("troupe_kv_pages{")]
            self.assertEqual(len(pages), 3)
            self.assertGreater(after['troupe_kv_pages{state="prefix_cache"}'], 0)
            self.assertEqual(sum(after[name] for name in pages) * after["troupe_kv_page_tokens"], after["troupe_kv_tokens"])
            self.assertLess(after["process_resident_memory_bytes"], after["troupe_memory_budget_bytes"])

    def test_drafts_are_counted(self):
        with Server("--ctx", 1024) as server:
            body = {"prompt": "the driver of the device of " * 8, "max_tokens": 300, "temperature": 0, "ignore_eos": True}
            for _ in range(30):  # how soon a draft is worth a check depends on time
                troupe = server.ask("/v1/completions", body)["troupe"]
                if troupe["draft_accepted"] > 0:
                    break
            accepted = server.metric('troupe_drafted_tokens_total{end="accepted"}')
            self.assertGreater(accepted, 0)
            self.assertEqual(accepted, troupe["draft_accepted"])
            self.assertGreater(server.metric("troupe_draft_checks_total"), 0)

    def test_what_a_draft_model_guesses_is_counted_apart(self):
        with Server("--ctx", 512, "--speculate", "draft", "--draft", TINY) as server:
            answer = server.ask("/v1/completions", {"prompt": "The kernel", "max_tokens": 60, "temperature": 0.9,
                                                    "seed": 4, "ignore_eos": True})
            accepted = server.metric('troupe_drafter_tokens_total{drafter="model",end="accepted"}')
            self.assertGreater(accepted, 0)  # the first one is tried whatever it may cost
            self.assertEqual(accepted, answer["troupe"]["draft_accepted"])
            self.assertEqual(server.metric('troupe_drafter_tokens_total{drafter="model",end="rejected"}'), 0)
            self.assertGreater(server.metric("troupe_drafting_seconds_total"), 0)
            self.assertGreater(server.metric('troupe_memory_plan_bytes{part="draft"}'), 8 << 20)

    def test_drafts_by_the_experts_in_memory_are_counted_with_what_they_read(self):
        with Server("--slots", 128, "--link", "60MiB/1ms", "--ctx", 512, "--speculate", "resident") as server:
            for _ in range(10):  # how soon a draft is worth a check depends on time
                troupe = server.ask("/v1/completions", {"prompt": "The kernel", "max_tokens": 60, "temperature": 0,
                                                        "ignore_eos": True})["troupe"]
                if troupe["drafted"] > 0:
                    break
            ends = [server.metric(f'troupe_drafter_tokens_total{{drafter="resident",end="{end}"}}')
                    for end in ("accepted", "rejected")]
            self.assertGreater(sum(ends), 0)
            reads = [server.metric(f'troupe_draft_reads_total{{end="{end}"}}') for end in ("used", "unused")]
            self.assertGreater(sum(reads), 0)
            self.assertEqual(server.metric('troupe_inexact_total{kind="dropped"}'), 0)

    def test_answers_of_low_copies_are_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            original, model = f"{folder}/model.gguf", f"{folder}/model-q8_0.gguf"
            for arguments in (["synth", original, "--shape", "tiny-olmoe", "--type", "F16"],
                              ["pack", original, "--high", "Q8_0", "--low", "Q4_0"]):
                subprocess.run([serve_test.TROUPE, *arguments], check=True, capture_output=True)
            with Server("--slots", 8, "--low-copy", "prefill=1,decode", model=model) as server:
                server.ask("/v1/completions", {"prompt": list(range(20, 60)), "max_tokens": 8, "ignore_eos": True})
                for name in ('troupe_inexact_total{kind="low_copy"}', 'troupe_tier_expert_asks_total{tier="disk_low_copy"}'):
                    self.assertGreater(server.metric(name), 0, name)

    def test_prefetches_are_counted_by_what_became_of_them(self):
        with Server("--slots", 40, "--predict", "gate", "--ctx", 1024) as server:
            server.complete("The kernel", 200)
            ends = [server.metric(f'troupe_prefetches_total{{end="{end}"}}') for end in ("useful", "late", "cancelled", "wasted")]
            self.assertGreater(sum(ends), 0)  # which of them depends on the disk's speed
            needed = server.metric("troupe_needed_loads_total")
            named, likely, in_time = (server.metric(f'troupe_predicted_loads_total{{known="{known}"}}')
                                      for known in ("named", "likely", "in_time"))
            self.assertGreater(named, 0)
            self.assertTrue(needed >= named >= likely >= in_time, (needed, named, likely, in_time))

    def test_requests_under_way_hold_pages(self):
        with Server("--ctx", 4096) as server:
            stream = server.stream("The kernel", 3000)
            for _ in zip(range(3), stream):
                pass
            values = values_of(page_of(server))
            self.assertEqual(values['troupe_requests_now{state="decoding"}'], 1)
            self.assertGreater(values['troupe_kv_pages{state="requests"}'], 0)
            stream.close()

    def test_whoever_has_no_key_is_counted(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write("one\n")
            keys.flush()
            with Server("--api-keys", keys.name) as server:
                self.assertEqual(refused(server, "/v1/models"), 401)
                self.assertEqual(refused(server, "/a/guess"), 401)
                with socket.create_connection(("127.0.0.1", server.port), 30) as client:
                    client.sendall(b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
                    self.assertIn(b" 401 ", client.recv(100))
                with server.open("/metrics", headers={"Authorization": "Bearer one"}) as response:
                    values = values_of(response.read().decode())
                self.assertEqual(values['troupe_requests_total{endpoint="/v1/models",status="401"}'], 2)
                self.assertEqual(values['troupe_requests_total{endpoint="other",status="401"}'], 1)
                # Only where a body was still to come did the connection end for it.
                self.assertEqual(values['troupe_http_ended_total{why="refused"}'], 1)

    def test_promtool_has_nothing_to_say(self):
        with Server("--slots", 40, "--ctx", 1024) as server:
            use(server)
            page = page_of(server)
        self.assertEqual(promtool("check", "metrics", text=page), (0, ""))
        self.assertNotEqual(promtool("check", "metrics", text=page + "wrong_total 1\nwrong_total 1\n")[0], 0)


class Documents(unittest.TestCase):
    def test_operation_explains_every_figure_and_no_other(self):
        told = set()
        for source in (path for folder in ("src", "tools") for path in (ROOT / folder).rglob("*.cc")):
            if not source.stem.endswith("_test"):
                told |= set(re.findall(r'"((?:troupe|process)_[a-z_]+)"', source.read_text()))
        explained = re.findall(r"\b((?:troupe|process)_[a-z_]+)(…?)", (ROOT / "docs/operation.md").read_text())
        beginnings = tuple(name for name, more in explained if more)
        names = {name for name, more in explained if not more}
        self.assertGreater(len(told), 80)
        self.assertEqual({name for name in told - names if not name.startswith(beginnings)}, set())
        self.assertEqual(names - told, set())
        for beginning in beginnings:
            self.assertTrue(any(name.startswith(beginning) for name in told), beginning)


def expressions():
    """(where, PromQL) of the dashboard and of the alerts."""
    dashboard = json.loads((PACKAGING / "grafana.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield "grafana.json: " + panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield "grafana.json: " + variable["name"], variable["query"]["query"]
    text = (PACKAGING / "alerts.yml").read_text()
    for name, rule in re.findall(r"- alert: (\w+)\n(.*?)annotations:", text, re.DOTALL):
        yield "alerts.yml: " + name, rule


class Dashboards(unittest.TestCase):
    def test_what_they_ask_for_is_told(self):
        # A node of a cluster tells all that a lone server does, and more; of etcd's there is none.
        with socket.create_server(("127.0.0.1", 0)) as free:
            peer = f"127.0.0.1:{free.getsockname()[1]}"
        with Server("--slots", 40, "--ctx", 1024, "--peers", peer, "--peer-address", peer,
                    "--access-log", os.devnull) as server:
            use(server)
            told = [(found[1], dict(LABEL.findall(found[2] or ""))) for line in page_of(server).splitlines()
                    if not line.startswith("#") and (found := SERIES.fullmatch(line))]
        asked = 0
        for where, expression in expressions():
            selectors = SELECTOR.findall(expression)
            self.assertTrue(selectors or "up{" in expression, where)
            for name, labels in selectors:
                # tests/cluster_test.py, tests/reload_test.py and tests/end_cloud_test.py read them
                if name in ("troupe_cluster_listed", "troupe_http_certificate_expires_timestamp_seconds",
                            "troupe_peer_certificate_expires_timestamp_seconds", "troupe_split_wrong_total"):
                    continue
                series = [found for found_name, found in told if found_name == name]
                self.assertTrue(series, f"{where}: {name}")
                for label, operator, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', labels):
                    if label in ("instance", "job"):  # which Prometheus adds
                        continue
                    self.assertTrue(any(label in found for found in series), f"{where}: {name}{{{label}}}")
                    if operator == "=":
                        self.assertTrue(any(found.get(label) == value for found in series), f"{where}: {name}{{{labels}}}")
                for label in re.findall(r"\bby \(([^)]*)\)", expression):
                    known = {key for found_name, found in told if found_name in expression for key in found}
                    self.assertLessEqual(set(label.split(", ")) - {"instance"}, known, where)
                asked += 1
        self.assertGreater(asked, 35)

    def fired(self, alert, series, at="20m"):
        """Whether the alert fires where each series has these values, one a minute."""
        lines = [f"rule_files: [{PACKAGING / 'alerts.yml'}]", "tests:", "- interval: 1m", "  input_series:"]
        for name, values in series.items():
            lines += [f"  - series: '{name}'", f"    values: '{values}'"]
        lines += ["  alert_rule_test:", f"  - {{eval_time: {at}, alertname: {alert}, exp_alerts: []}}"]
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder) / "test.yml"
            rules.write_text("\n".join(lines) + "\n")
            code, said = promtool("test", "rules", rules)
        self.assertIn("SUCCESS" if code == 0 else "got:", said)
        return code != 0

    def test_the_alerts_fire_at_what_they_are_for_and_not_at_what_clients_choose(self):
        def requests(status):
            return {'troupe_requests_total{instance="a",endpoint="/v1/completions",status="200"}': "0+60x30",
                    f'troupe_requests_total{{instance="a",endpoint="/v1/completions",status="{status}"}}': "0+10x30"}
        self.assertTrue(self.fired("TroupeFails", requests(500)))
        for status in (503, 504, 429, 400):
            self.assertFalse(self.fired("TroupeFails", requests(status)), status)
        self.assertTrue(self.fired("TroupeTurnsAway", requests(504)))
        self.assertFalse(self.fired("TroupeTurnsAway", requests(500)))
        self.assertTrue(self.fired("TroupePassesFail", {'troupe_failed_passes_total{instance="a"}': "0x15 1x15"}))
        self.assertFalse(self.fired("TroupePassesFail", {'troupe_failed_passes_total{instance="a"}': "1x30"}))
        expires = 'troupe_http_certificate_expires_timestamp_seconds{instance="a"}'
        self.assertTrue(self.fired("TroupeCertificateExpires", {expires: f"{6 * 86400}x120"}, at="90m"))
        self.assertFalse(self.fired("TroupeCertificateExpires", {expires: f"{30 * 86400}x120"}, at="90m"))
        peers = 'troupe_peer_certificate_expires_timestamp_seconds{instance="a"}'
        self.assertTrue(self.fired("TroupePeerCertificateExpires", {peers: f"{13 * 86400}x120"}, at="90m"))
        self.assertFalse(self.fired("TroupePeerCertificateExpires", {peers: f"{30 * 86400}x120"}, at="90m"))
        wrong = 'troupe_split_wrong_total{instance="a"}'
        self.assertTrue(self.fired("TroupeCloudWrong", {wrong: "0x15 1x15"}))
        self.assertFalse(self.fired("TroupeCloudWrong", {wrong: "0x30"}))
        lost = 'troupe_log_lines_total{instance="a",end="lost"}'
        self.assertTrue(self.fired("TroupeLosesLogLines", {lost: "0x15 3x15"}))
        self.assertFalse(self.fired("TroupeLosesLogLines", {lost: "3x30"}))

    def test_promtool_can_read_them(self):
        code, said = promtool("check", "rules", PACKAGING / "alerts.yml")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"SUCCESS: [0-9]+ rules found")
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder) / "dashboard.yml"

            def check(found):
                lines = ["groups:", "- name: dashboard", "  rules:"]
                for number, expression in enumerate(found):
                    plain = expression.replace("$__rate_interval", "5m").replace("$instance", ".*")
                    lines += [f"  - record: dashboard:{number}", "    expr: " + json.dumps(plain)]
                rules.write_text("\n".join(lines) + "\n")
                return promtool("check", "rules", rules)
            panels = [expression for where, expression in expressions()
                      if where.startswith("grafana") and "label_values" not in expression]
            code, said = check(panels)
            self.assertEqual(code, 0, said)
            self.assertNotEqual(check(["sum(rate(troupe_tokens_total[5m])"])[0], 0)


if __name__ == "__main__":
    serve_test.TROUPE = sys.argv.pop(1)
    unittest.main()
