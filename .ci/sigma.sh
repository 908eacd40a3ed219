#!/usr/bin/env bash
# Makes server/internal/web/static/vendor/sigma.js: what the graph and the map use of sigma and graphology, in one file.
# It needs Node 20 with npm and its registry.
set -euo pipefail
out=$(realpath "${1:-"$(dirname "${BASH_SOURCE[0]}")/../server/internal/web/static/vendor/sigma.js"}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --no-package-lock --no-audit --no-fund --loglevel=error \
	sigma@3.0.3 graphology@0.26.0 esbuild@0.28.2 terser@5.51.4
cat >entry.mjs <<'END'
export { default as Sigma } from 'sigma'
export { EdgeLineProgram, EdgeArrowProgram } from 'sigma/rendering'
export { MultiDirectedGraph } from 'graphology'
END
npx esbuild entry.mjs --bundle --minify --format=esm --target=es2020 --log-level=warning --outfile=bundle.js
npx terser bundle.js --module --compress passes=3,unsafe_arrows --mangle --output "$out"
