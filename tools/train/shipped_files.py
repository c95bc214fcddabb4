"""What lies in a folder of models, and whether it is what its pages say: every GGUF file's hash on a page,
every file of a card there with its hash."""
import hashlib
import json
import pathlib

CARD = ".card.json"


def identity(path):
    content = pathlib.Path(path).read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def cards(folder):
    """[(name, facts)]"""
    return [(path.name[:-len(CARD)], json.loads(path.read_text(encoding="utf-8")))
            for path in sorted(pathlib.Path(folder).glob(f"*{CARD}"))]


def without_card(folder):
    """GGUF files that no card names."""
    named = {file for _, facts in cards(folder) for file in facts["files"]}
    return [path for path in sorted(pathlib.Path(folder).glob("*.gguf")) if path.name not in named]


def wrong_identity(path, stated):
    """Complaints about a file of which a card says `stated`."""
    if not path.exists():
        return [f"{path.name}: its card names it, and it is not there"]
    found = identity(path)["sha256"]
    return [] if found == stated["sha256"] else [f"{path.name}: SHA-256 {found}, its card says {stated['sha256']}"]


def complaints(folder):
    folder, wrong = pathlib.Path(folder), []
    pages = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.md"))
    for model in sorted(folder.glob("*.gguf")):
        found = identity(model)["sha256"]
        if found not in pages:
            wrong.append(f"{model.name}: SHA-256 {found} is on no page beside it")
    for name, facts in cards(folder):
        if not facts["files"]:
            wrong.append(f"{name}{CARD}: names no file; tools/train/evaluate --record writes them")
        for file, stated in facts["files"].items():
            wrong += wrong_identity(folder / file, stated)
        wrong += wrong_identity(folder / f"{name}.evaluation.json", facts["evaluation_file"])
        for file, stated in facts.get("exercise_files", {}).items():
            wrong += wrong_identity(folder / "exercises" / file, stated)
    return wrong
