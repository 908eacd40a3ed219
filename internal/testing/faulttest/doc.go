// Package faulttest breaks stores on purpose and counts the cases: disks that fail at each of their calls, power
// failures at each moment, and interrupted migrations. It has only test files. docs/reliability.md has the results and
// the commands.
package faulttest
