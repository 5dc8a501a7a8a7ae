package report

// How much of what a command wrote a report shows; the bundle holds the rest.
const (
	maxOutputLines = 200 // of one stream
	maxOutputBytes = 64 << 10
	maxLine        = 400 // characters of one escaped line, so that a line can't hide what follows it
	maxField       = 160 // characters of one argument, value or name
)
