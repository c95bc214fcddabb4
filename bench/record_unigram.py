#!/usr/bin/env python3
"""Records what SentencePiece makes of some texts, for tests/switch_test.py: tests/data/unigram gets a small
unigram model, trained on this project's pages with T5's habits and a map of a few characters, and
the ids of each text.

usage: record_unigram.py, with Debian's python3-sentencepiece
"""
import json
import pathlib
import tempfile

import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/data/unigram"
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")

# Characters and how they are written: what nmt_nfkc, T5's own map, says of them.
MAP = {"\n": " ", "\t": " ", "\u00a0": " ", "\u3000": " ", "\ufb01": "fi", "\u00bd": "1\u20442", "\u2026": "...", "\uff21": "A",
       "\uff42": "b", "e\u0301": "\u00e9", "\u200b": "", "\u2160": "I", "\u33a1": "m2"}

TEXTS = ["", " ", "a", "The prompt goes through the encoder.", "  two  blanks   and three ", "line one\nline two\n\n\nend\n",
         "\ttabs\tand\u00a0no-break\u3000blanks", "\ufb01rst \ufb01le", "\u00bd of it\u2026", "\uff21\uff42\uff42\uff21",
         "cafe\u0301 and caf\u00e9", "zero\u200bwidth", "\u2160 and \u33a1", "\u65e5\u672c\u8a9e", "mixed \u65e5\u672c and \U0001f600 text",
         "\U0001f600\U0001f600", "snake_case_names(and, brackets)[0] == {1: 2}", "1234567890 3.14159", "experts, experts, experts!",
         "unusualwordwithoutanyblanksinit", "\u2581 underline \u2581x", "a\u2581b", "UPPER CASE AND MiXeD", "e\u0301", "\u200b", "\n",
         "The quick brown fox jumps over the lazy dog; 50% of the experts are in memory (at most)."]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        rules, text = folder / "map.tsv", folder / "text"
        rules.write_text("".join(f"{' '.join(f'{ord(c):X}' for c in source)}\t{' '.join(f'{ord(c):X}' for c in target)}\n"
                                 for source, target in MAP.items()))
        text.write_text("".join((ROOT / page).read_text() for page in PAGES))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / "spiece"), model_type="unigram", vocab_size=400, pad_id=0, eos_id=1,
            unk_id=2, bos_id=-1, character_coverage=0.999, normalization_rule_tsv=str(rules), num_threads=1,
            hard_vocab_limit=False)
        model = (folder / "spiece.model").read_bytes()
    (OUT / "spiece.model").write_bytes(model)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    vectors = [{"text": text, "ids": pieces.encode(text)} for text in TEXTS]
    (OUT / "vectors.json").write_text("[" + ",\n ".join(map(json.dumps, vectors)) + "]\n")


if __name__ == "__main__":
    main()
