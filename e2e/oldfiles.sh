#!/usr/bin/env bash
# Makes internal/testing/faulttest/testdata/oldfiles.tar.bz2: for each schema version that had a program, a file of the
# last such program, built from its commit. It needs the history of this repository, Go, access to Go modules, bzip2,
# and half an hour.
#
#   e2e/oldfiles.sh [FOLDER]    FOLDER keeps the files, and its files are not made again
#
# Versions 2, 3, 6, 7, 8 and 30 were committed together with later ones, so no program had them. 40 was committed after
# 41. The one commit of version 15 counted two numbers in the hash of a row that no later program does. The last commits
# of version 42 wrote vectors in a form that no later program reads; here is the one before them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=${1:-$work/made}
mkdir -p "$made"
made=$(cd "$made" && pwd)
export CGO_ENABLED=0 GOFLAGS="-trimpath -mod=mod"

# each version and its commit
programs=(
	1:1f370d4c 4:c4e58651 5:bde29cdd 9:8ed8fb36 10:dfff508a 11:32eb8182 12:aad795c3 13:b7cafce5 14:d9b77d5a
	16:28cb1718 17:6c54af40 18:24f7dc10 19:b2b90a14 20:04043919 21:e6da938b 22:f75406d7 23:16fcfbd1 24:831cfd5a
	25:4b2607f9 26:2f2eb29e 27:0859be0a 28:f7fb1497 29:969c3356 31:eea73df9 32:42502d3c 33:50f57674 34:026cd77a
	35:4c8609c1 36:84830db8 37:ee46627c 38:eb0f91f0 39:b6331b39 41:652c6f75 42:dd4d76a8 43:0ee74fde
)

for program in "${programs[@]}"; do
	file=$made/$(printf %04d "${program%:*}").db
	[[ ! -f $file ]] || continue
	echo "== version ${program%:*}, commit ${program#*:}"
	rm -rf "$work/source"
	mkdir "$work/source"
	git -C "$root" archive "${program#*:}" | tar --extract --directory "$work/source"
	mkdir -p "$work/source/e2e/oldfiles"
	cp "$root/e2e/oldfiles/main.go" "$work/source/e2e/oldfiles"
	(cd "$work/source" && go run ./e2e/oldfiles "$work/made.db")
	mv "$work/made.db" "$file"
done
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=0600 --mtime=@0 --directory "$made" \
	$(cd "$made" && echo *.db) | bzip2 -9 >"$root/internal/testing/faulttest/testdata/oldfiles.tar.bz2"
