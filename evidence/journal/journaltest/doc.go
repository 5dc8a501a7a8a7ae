// Package journaltest holds what tests of everything above a ledger need: the backends they run on,
// a genesis, ledgers filled with finished attempts, and ways to come in between two steps of somebody else.
//
//	for name, open := range journaltest.Backends() {
//		t.Run(name, func(t *testing.T) { led := open(t); … })
//	}
//
// A new backend is one more constructor in Backends; every test that enumerates them then runs on it.
package journaltest
