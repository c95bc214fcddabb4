#!/usr/bin/env python3
"""What somebody sees who chats with `troupe run --chat`, through a pipe and at a terminal.

usage: chat_test.py TROUPE [unittest arguments]
"""
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

import command_line_test as shell

TINY = shell.TINY


class Chats(shell.CommandLineTest):
    def answers(self, *lines):
        done = subprocess.run([shell.TROUPE, "run", TINY, "--chat", "-n", "8", "--temperature", "0", "--ignore-eos"],
                              input="".join(line + "\n" for line in lines), text=True, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout

    def test_new_forgets_the_talk(self):
        once = self.answers("The kernel")
        self.assertEqual(self.answers("The kernel", "/new", "The kernel"), 2 * once)
        self.assertNotEqual(self.answers("The kernel", "The kernel"), 2 * once)

    def talk(self, hole, messages):
        """What is answered, what is said beside it and the peak of memory; the talk begins with a hole of zeros."""
        with open(self.folder / "talk", "wb+") as talk, open(self.folder / "said", "wb+") as said, \
                open(self.folder / "answers", "wb+") as answers:
            talk.seek(hole)  # zeros on no disk
            talk.write(messages)
            talk.seek(0)
            process = subprocess.Popen([shell.TROUPE, "run", TINY, "--chat", "-n", "8", "--ctx", "64",
                                        "--temperature", "0", "--ignore-eos"],
                                       stdin=talk, stdout=answers, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            answers.seek(0)
            lines = said.read().decode().splitlines()
            self.assertEqual(process.returncode, 0, lines)
            return answers.read().decode(), lines, used.ru_maxrss << 10

    def test_a_message_too_long_for_the_context_is_left_out_and_takes_no_memory(self):
        size = 128 << 20
        short, _, usual = self.talk(0, b"\nThe kernel\n")
        # And a message that no newline ends.
        answers, lines, peak = self.talk(size, b"\nThe kernel\n" + b"x" * 1000000)
        refused = [line for line in lines if "the message is left out" in line]
        self.assertEqual(len(refused), 2, lines)
        for line in refused:
            self.assertRegex(line, r"^a message of more than \d+ bytes, and the context has 64 tokens")
        self.assertEqual(answers, short)
        self.assertLess(peak, usual + size // 4)

    def test_ctrl_c_takes_back_a_message_that_is_being_read(self):
        for chunk in (1, 512):  # the second is read to its end: the message is one
            process = subprocess.Popen([shell.TROUPE, "run", TINY, "--chat", "-n", "2", *shell.slow(chunk)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            process.stdin.write("The kernel. " * 100 + "\n")
            process.stdin.flush()
            shell.wait_until_it_catches(process, signal.SIGINT)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, said)
            self.assertIn("interrupted before an answer began; the message is left out", said)

    ASKED = ("run", TINY, "--chat", "--temperature", "0", "--ignore-eos", "--threads", "1")

    def chat(self, *arguments, lines=(), tokens=8):
        done = subprocess.run([shell.TROUPE, *map(str, self.ASKED + ("-n", tokens) + arguments)], input="".join(line + "\n" for line in lines),
                              text=True, check=True, capture_output=True, timeout=60)
        return done.stdout, done.stderr

    def test_the_first_message_may_come_with_the_command(self):
        talk = self.answers("The kernel", "Files")
        self.assertEqual(self.chat("--prompt", "The kernel", lines=["Files"])[0], talk)
        text = self.folder / "text"
        text.write_text("The kernel")
        self.assertEqual(self.chat("--file", text, lines=["Files"])[0], talk)

    def test_a_full_context_forgets_the_oldest_turns_and_says_so(self):
        said, remarks = self.chat("--ctx", 96, lines=["The kernel is a program"] * 8)
        self.assertEqual(len(said.splitlines()) >= 8, True, said)
        self.assertIn("messages do not fit into the context of 96 tokens any more and are forgotten", remarks)
        self.assertNotIn("left out", remarks)
        # A model that does not stop fills the context with its first answer, and the talk goes on.
        said, remarks = self.chat("--ctx", 96, tokens=-1, lines=["The kernel", "Files"])
        self.assertEqual(remarks.count("ended: context full"), 2, remarks)

    def test_commands_help_save_load_and_end(self):
        talk = self.folder / "talk.json"
        once = self.answers("The kernel", "Files")
        self.assertIn("\n2 messages saved\n", self.chat(lines=["The kernel", f"/save {talk}"])[1])
        saved = json.loads(talk.read_text())["messages"]
        self.assertEqual([message["role"] for message in saved], ["user", "assistant"])
        first = self.answers("The kernel")
        self.assertEqual(first + self.chat(lines=[f"/load {talk}", "Files"])[0], once)
        self.assertEqual(self.chat(lines=["/exit", "The kernel"])[0], "")
        self.assertIn("/system TEXT", self.chat(lines=["/help"])[1])
        self.assertIn("did you mean /save?", self.chat(lines=["/svae x"])[1])
        self.assertEqual(self.chat("--quiet", lines=["/new", "/system Be brief.", "/clear", "/system"])[1].splitlines()[-4:],
                         ["a new talk", "a new talk, with this system message", "a new talk, with the same system message",
                          "a new talk, without a system message"])
        self.assertIn("no such file", self.chat(lines=["/load none"])[1].lower())
        self.assertEqual(self.chat("--system", "Be brief.", lines=["The kernel"])[0],
                         self.chat(lines=["/system Be brief.", "The kernel"])[0])

    def test_a_template_of_the_users_takes_the_place_of_the_models(self):
        template = self.folder / "template.jinja"
        template.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}")
        record = json.loads(self.chat("--chat-template", template, "--json", "-", lines=["The kernel"])[0])
        ids = ",".join(map(str, record["answers"][0]["prompt_ids"]))
        self.assertEqual(shell.troupe("tokenize", TINY, "--ids", ids).stdout, "user: The kernel\nassistant: \n")
        template.write_text("{% for %}")
        self.assert_fails(1, ["--chat-template", str(template)], "run", TINY, "--chat", "--chat-template", template)
        self.assert_fails(1, ["--chat-template", "opening it"], "run", TINY, "--chat", "--chat-template", self.folder / "none")

    def test_a_message_may_have_several_lines(self):
        quoted = self.chat(lines=['"""', "One", "Two", '"""'])[0]
        self.assertEqual(self.chat(lines=["One\\", "Two"])[0], quoted)
        self.assertNotEqual(self.chat(lines=["One", "Two"])[0], quoted)

    def test_a_talk_has_a_record(self):
        record = json.loads(self.chat("--json", "-", lines=["The kernel", "Files"])[0])
        self.assertEqual(len(record["messages"]), 4)
        self.assertEqual([len(answer["token_ids"]) for answer in record["answers"]], [8, 8])
        self.assertGreater(len(record["answers"][1]["prompt_ids"]), len(record["answers"][0]["prompt_ids"]))

    def test_explains_its_substitutes_at_the_end(self):
        done = subprocess.run([shell.TROUPE, "run", TINY, "--chat", "-n", "8", "--slots", "40", "--substitute", "drop",
                               "--explain"], input="The kernel\n", text=True, check=True, capture_output=True)
        self.assertRegex(done.stderr, r"(?m)^substitution drop, .*\n +[1-9]\d* of \d+ slots missed: ")


class Terminal(shell.CommandLineTest):
    """A talk at a terminal: keys that edit, text that is pasted, Ctrl-C and Ctrl-D."""

    def setUp(self):
        super().setUp()
        self.process = None

    def begin(self, *arguments, chat=("--chat",), term="xterm"):
        """Starts a talk on a terminal of its own; its answers go to a file."""
        self.controller, terminal = pty.openpty()
        self.answers = open(self.folder / "answers", "wb+")
        self.record = self.folder / "talk.json"
        environment = {**os.environ, "TERM": term, "TROUPE_HISTORY": str(self.folder / "history"), "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen([shell.TROUPE, "run", TINY, *chat, "-n", "4", "--temperature", "0", "--ignore-eos",
                                         "--ctx", "8192", "--threads", "1", "--json", self.record, *map(str, arguments)],
                                        stdin=terminal, stdout=self.answers, stderr=terminal, env=environment,
                                        start_new_session=True)
        os.close(terminal)
        self.shown, self.seen = "", 0
        self.addCleanup(self.answers.close)
        self.addCleanup(os.close, self.controller)
        self.wait_for("> ")

    def read_on(self):
        """What is shown next. False: the other end was closed."""
        ready, _, _ = select.select([self.controller], [], [], 1)
        try:
            self.shown += os.read(self.controller, 4096).decode(errors="replace") if ready else ""
        except OSError:
            return False
        return True

    def wait_for(self, words):
        """Until they are shown, after what was waited for before."""
        end = time.monotonic() + 60
        while (at := self.shown.find(words, self.seen)) < 0:
            self.assertLess(time.monotonic(), end, f"{words!r} not in {self.shown[self.seen:]!r}")
            self.assertTrue(self.read_on(), self.shown)
        self.seen = at + len(words)

    def wait_for_end(self, code):
        while self.read_on():
            pass
        self.assertEqual(self.process.wait(timeout=60), code, self.shown)

    def type(self, keys):
        keys = keys.encode() if isinstance(keys, str) else keys
        for at in range(0, len(keys), 1024):  # a terminal's queue is short
            os.write(self.controller, keys[at:at + 1024])
            time.sleep(0.01)

    def ask(self, keys):
        self.type(keys)
        self.wait_for("ended: ")
        self.wait_for("> ")  # what is typed before is for a terminal that edits no lines

    def messages(self, role="user"):
        """Those of the talk, which ends with it."""
        self.type(b"\x04")
        self.wait_for_end(0)
        return [m["content"] for m in json.loads(self.record.read_text())["messages"] if m["role"] == role]

    def test_a_model_without_a_prompt_begins_a_talk(self):
        self.begin(chat=())
        self.ask("The kernel\r")
        self.assertEqual(self.messages(), ["The kernel"])

    def test_arrow_keys_edit_and_bring_back(self):
        self.begin()
        self.ask("The krnel\x1b[D\x1b[D\x1b[D\x1b[De\r")
        self.ask("\x1b[A, again\r")
        self.assertEqual(self.messages(), ["The kernel", "The kernel, again"])
        self.assertIn("kernel", (self.folder / "history").read_text())

    def test_tab_completes_a_command_and_is_a_tab_elsewhere(self):
        self.begin()
        self.type("/he\t\r")
        self.wait_for("/system TEXT")
        self.wait_for("> ")
        self.ask("a\tb\r")
        self.assertEqual(self.messages(), ["a\tb"])

    def test_a_dumb_terminal_gets_no_escape_sequences_for_pastes(self):
        self.begin(term="dumb")
        self.ask("The kernel\r")
        self.assertEqual(self.messages(), ["The kernel"])
        self.assertNotIn("\x1b[?2004", self.shown)
        self.begin()
        self.messages()
        self.assertIn("\x1b[?2004h", self.shown)

    def test_a_marked_paste_is_one_message(self):
        self.begin()
        self.ask("About:\x1b[200~one\rtwo\r\tthree\x1b[201~ end\r")
        self.assertEqual(self.messages(), ["About:one\ntwo\n\tthree end"])

    def test_a_paste_without_marks_is_one_message(self):
        self.begin()
        self.ask("one\ntwo\nthree\n")
        self.assertEqual(self.messages(), ["one\ntwo\nthree"])

    def test_a_line_longer_than_a_terminals_own_is_read_to_its_end(self):
        self.begin()
        line = " ".join(f"w{n}" for n in range(1200))
        self.assertGreater(len(line), 4095)
        self.ask(line + "\r")
        self.assertEqual(self.messages(), [line])

    def test_letters_of_other_alphabets_are_typed_and_erased(self):
        self.begin()
        self.ask("Gr\u00fc\u00dfe \u20ac\x7f\x7f!\r")
        self.assertEqual(self.messages(), ["Gr\u00fc\u00dfe!"])

    def test_ctrl_c_at_the_prompt_keeps_the_talk(self):
        self.begin()
        self.ask("The kernel\r")
        self.type("half a mess")
        self.wait_for("half a mess")
        os.kill(self.process.pid, signal.SIGINT)
        self.wait_for("/exit ends the talk")
        self.wait_for("> ")
        self.ask("Files\r")
        self.assertEqual(self.messages(), ["The kernel", "Files"])

    def test_sigterm_at_the_prompt_ends_the_talk_in_good_order(self):
        self.begin()
        self.ask("The kernel\r")
        os.kill(self.process.pid, signal.SIGTERM)
        self.wait_for_end(128 + signal.SIGTERM)
        self.assertEqual(len(json.loads(self.record.read_text())["messages"]), 2)


if __name__ == "__main__":
    shell.TROUPE = sys.argv.pop(1)
    unittest.main()
