// Package systemtest tests the whole store through its public API: rules that involve several concepts. It has only
// test files. Tests of one concept are in the root, and the promises of every backend in storetest, which
// TestConformance runs for each way to open a store.
package systemtest
