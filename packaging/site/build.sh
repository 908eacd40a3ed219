#!/usr/bin/env bash
# Builds the documentation site into a folder, and fails if a link leads nowhere. It needs Python 3.10 and PyPI.
#
#   packaging/site/build.sh OUT        OUT/index.html is the first page; any web server can serve the folder
set -euo pipefail
out=$(realpath -m "${1:?give the folder to make}")
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/python"
"$work/python/bin/pip" install -q -r requirements.txt
cp mkdocs.yml "$work"
python3 prepare.py ../.. "$work/source"
"$work/python/bin/mkdocs" --quiet build --strict --config-file "$work/mkdocs.yml" --site-dir "$out"
# A page loads only files of the folder.
if grep -rEl '<(script|img|iframe|link rel="(stylesheet|preconnect)")[^>]* (src|href)="?https?://' "$out" --include='*.html'; then
	echo "these pages load something from elsewhere" >&2
	exit 1
fi
