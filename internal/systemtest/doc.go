// Package systemtest holds tests of the whole store through its public API: rules that no single concept could break
// alone. It has test files only. Tests of one concept lie beside it in the root, and what every backend promises in
// storetest.
package systemtest
