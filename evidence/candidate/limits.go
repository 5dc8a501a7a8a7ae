package candidate

const (
	maxDocument = 1 << 20   // what a run may print at most; the document is its stdout
	maxChanges  = 10_000    // files of the largest source
	maxContent  = 512 << 10 // bytes of all changes; two digits a byte fill the document
)
