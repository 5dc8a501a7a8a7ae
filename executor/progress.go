package executor

// Progress is told each stage as it is reached: probe, snapshot, create, isolation, start, exit,
// removed. Text is short and safe to print. It must not block.
type Progress func(stage, text string)
