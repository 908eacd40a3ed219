"""Copies the documents for the site: README.md becomes the first page, and links to files of the source lead to the
repository.  prepare.py REPOSITORY TARGET"""

import os
import re
import shutil
import sys

SOURCE = "https://github.com/souvenir-ai/souvenir/blob/main/"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}


def place(path):
    """Where a file of the repository is on the site, or None."""
    if path in PAGES:
        return PAGES[path]
    return path[len("docs/"):] if path.startswith("docs/") else None


def moved(text, at, new, repository):
    """The text of a page, with its links as they are from its new place."""

    def link(match):
        target = match.group(2)
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(at), path))
        if not os.path.exists(os.path.join(repository, path)):
            sys.exit(f"{at}: the link to {target} leads nowhere")
        there = place(path)
        if there is None or os.path.isdir(os.path.join(repository, path)):
            there = SOURCE + path
        else:
            there = os.path.relpath(there, os.path.dirname(new) or ".")
        return match.group(1) + there + ("#" + anchor if anchor else "") + match.group(3)

    parts = re.split(r"(```.*?\n```|`[^`]+`)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("`") else LINK.sub(link, part) for part in parts)


def main(repository, target):
    shutil.copytree(os.path.join(repository, "docs"), target)
    for folder, _, names in list(os.walk(target)):
        for name in names:
            new = os.path.relpath(os.path.join(folder, name), target)
            if name.endswith(".md"):
                convert(repository, "docs/" + new, target, new)
    for path, new in PAGES.items():
        convert(repository, path, target, new)


def convert(repository, path, target, new):
    with open(os.path.join(repository, path), encoding="utf-8") as f:
        text = moved(f.read(), path, new, repository)
    with open(os.path.join(target, new), "w", encoding="utf-8") as f:
        f.write(text)


main(*sys.argv[1:])
