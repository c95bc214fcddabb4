"""Questions and answers out of the records of published task sets: one document a record."""
import json
import pathlib
import re
import shutil
import subprocess


def _worked(record):
    """A sum in words, worked out; the calculator marks <<2+3=5>> go."""
    steps, result = record["answer"].rsplit("####", 1)
    steps = re.sub(r"<<[^>]*>>", "", steps).strip()
    return f"Question: {record['question'].strip()}\n{steps}\nAnswer: {result.strip()}"


def _context(record):
    return f"Question: {record['context'].strip()}\nAnswer: {record['answer']}"


def _asked(record):
    return f"{record['context'].strip()} {record['answer']}"


def _choice(record):
    question = re.sub(r"\nAnswer:?$", "", record["query"].strip())
    question = question if question.startswith(("Question:", "Passage:")) else f"Question: {question}"
    return f"{question}\nAnswer: {record['choices'][record['gold']].strip()}"


def _answers(record):
    question = record["question"].strip()
    return f"Question: {question[:1].upper()}{question[1:].rstrip('?')}?\nAnswer: {record['answer'][0]}"


def _passage(record):
    return record["passage"].strip()


FORMS = {"worked": _worked, "context": _context, "asked": _asked, "choice": _choice, "answers": _answers,
         "passage": _passage}


class TaskFailed(Exception):
    """One line: which file, and what is wrong with it."""


def _zstd(flags, path):
    done = subprocess.run(["zstd", flags, str(path)], capture_output=True, check=False)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"]
        raise TaskFailed(f"{path}: zstd failed, said last: {said[-1]}")
    return done.stdout


def look(folder, tasks):
    """Raises TaskFailed if something that reading these will need is not there, or damaged."""
    for task in tasks:
        if not (pathlib.Path(folder) / task.name).exists():
            raise TaskFailed(f"{pathlib.Path(folder) / task.name}: no such file; --tasks names the folder of the task sets "
                             "(tools/train/README.md says which), --domains leaves theirs out")
    if tasks and shutil.which("zstd") is None:
        raise TaskFailed("no program zstd, which unpacks the task sets; scripts/install-packages.sh train")
    for task in tasks:
        _zstd("-tq", pathlib.Path(folder) / task.name)


def read(folder, task):
    """Yields (name, text) a record; records without an answer are left out."""
    data = _zstd("-dcq", pathlib.Path(folder) / task.name)
    for number, line in enumerate(data.decode("utf-8").strip("\n").split("\n")):
        record = json.loads(line)
        if record.get("answer", True):
            yield f"{task.name}#{number}", FORMS[task.form](record)
