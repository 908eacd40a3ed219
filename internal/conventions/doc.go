// Package conventions holds the source to its conventions: what imports what, how SQL is spelled, how texts and
// failures of tests are worded, how large the root is. It has tests only, which read files and run the go tool, and
// link nothing of the module.
package conventions
