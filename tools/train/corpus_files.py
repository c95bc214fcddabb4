"""A corpus on disk: DOMAIN.train.txt and DOMAIN.heldout.txt, documents ended by a NUL character, and
manifest.json with what went in. A folder is complete if it has a manifest.
"""
import hashlib
import json
import os
import pathlib

PARTS = ("train", "heldout")


def write_text(path, documents):
    with open(path, "w", encoding="utf-8", newline="") as file:
        for text in documents:
            file.write(text.replace("\0", "") + "\0")


def read_texts(folder, domain, part):
    path = pathlib.Path(folder) / f"{domain}.{part}.txt"
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().split("\0")[:-1]


def write_whole(path, text):
    """The file appears under its name when it is complete, and not otherwise."""
    part = pathlib.Path(f"{path}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def write_manifest(folder, manifest):
    write_whole(pathlib.Path(folder) / "manifest.json", json.dumps(manifest, indent=1) + "\n")


def read_manifest(folder):
    """None if the folder is not complete."""
    path = pathlib.Path(folder) / "manifest.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def wrong_vocabulary(work, manifest):
    """None if WORK/vocabulary-N.model is what made the tokens of this manifest, else one line."""
    path = pathlib.Path(work) / f"vocabulary-{manifest['pieces']}.model"
    if not path.exists():
        return f"{path}: no such file; tools/train/vocabulary makes it"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != manifest["vocabulary_sha256"]:
        return f"{path}: SHA-256 {found}, the tokens were made with {manifest['vocabulary_sha256']}"
    return None
