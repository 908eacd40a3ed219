//go:build souvenir_cgo && !sqlite_fts5 && !fts5

package sqlite

// The driver compiles full-text search in only under a build tag of its own. Without it the
// undefined name below stops the build and says what to do.
var _ = souvenir_cgo_needs_the_build_tag_sqlite_fts5__use_tags_souvenir_cgo_sqlite_fts5
