// Package conventions tests the conventions of the source: imports between packages, the form of SQL, the wording of
// texts and test failures, the size of the root. It has tests only, which read files and run the go tool, and import no
// other package of the module.
package conventions
