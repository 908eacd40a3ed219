#!/usr/bin/env bash
# basicmemory.sh PROGRAM FOLDER   makes basic-memory (the path of its program) write notes into a folder
set -euo pipefail
program=$1 folder=$2
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
note() { HOME=$home "$program" tool write-note "$@" >/dev/null; }

note --title Anna --folder people --tags team --tags "food & drink" --content '# Anna

## Observations
- [diet] allergic to peanuts #allergy (told in March)
- [language] speaks Norwegian

## Relations
- works_on [[Atlas]]
- knows [[Größe & Form]]
- manages [[Not yet written]]'
note --title Atlas --folder "" --type project --content '# Atlas

Deploys on Thursdays, led by [[people/anna|Anna]].'
note --title "Größe & Form" --folder people --tags 茶 --content $'línea 1\nlínea 2 — 我喜欢喝乌龙茶。'
rm -rf "$folder"
cp -r "$home/basic-memory" "$folder"
rm -rf "$folder/.basic-memory" # its index
