// Package systemtest tests the whole store through its public API: rules that involve several concepts. It has test
// files only. Tests of one concept are beside it in the root, and the promises of every backend in storetest.
// TestConformance here runs these for each way to open a store.
package systemtest
