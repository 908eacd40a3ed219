// Package faulttest breaks stores on purpose: disks that fail at each of their calls, power failures at each moment,
// and interrupted migrations. It also counts the cases. It has test files only. docs/reliability.md has the results and
// the commands.
package faulttest
