// Package ibsimtest has two ibsims for tests: [Fake], in the test's own process,
// for what needs no real one; and [Bench], Debian's ibsim with OpenSM on it. Both
// are for Linux only.
package ibsimtest
