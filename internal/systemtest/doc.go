// Package systemtest holds tests of the whole store through its public API: rules that no single concept could
// break alone. It has test files only. Tests of one concept are beside it in the root, and the promises of every
// backend in storetest, to which TestConformance here holds each way to open a store.
package systemtest
