// Package ledgertest tells whether a store keeps the ledger's contract, and helps to test what
// stands on one.
//
// Run is the suite every backend passes. NewMem makes a complete store in memory. NewFaulty wraps
// any ledger and loses appends or their replies on demand.
//
//	func TestConformance(t *testing.T) {
//		ledgertest.Run(t, func(t *testing.T) ledgertest.Backend {
//			path := filepath.Join(t.TempDir(), "ledger.db")
//			return ledgertest.Backend{Open: func(t *testing.T) ledger.Ledger { … }}
//		})
//	}
package ledgertest
