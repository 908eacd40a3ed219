// Package faulttest breaks stores on purpose, and counts: disks that fail at each of their calls, power that goes at
// each moment, and migrations that are stopped. It has test files only. docs/reliability.md has the results and the
// commands.
package faulttest
