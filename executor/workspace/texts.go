package workspace

import (
	"bytes"
	"fmt"
	"os"
	"sync/atomic"
)

// texts keeps small text files as they were, one after the other in one file, so that a diff needs
// neither the source, which its owner may change meanwhile, nor a second tree of files.
type texts struct {
	file *os.File
	next atomic.Int64
	at   []int64 // by place in the listing, where its bytes begin; -1: not kept
}

func newTexts(dir *os.File, entries int) (*texts, error) {
	f, err := createIn(dir, textsName)
	if err != nil {
		return nil, err
	}
	t := &texts{file: f, at: make([]int64, entries)}
	for i := range t.at {
		t.at[i] = -1
	}
	return t, nil
}

// kept is where one file's bytes go. The zero value keeps nothing.
type kept struct {
	file     *os.File
	at, done int64
}

// place reserves room for a file of known size. What doesn't fit is not kept.
func (t *texts) place(size uint64) kept {
	if size == 0 || size > maxDiffFile {
		return kept{}
	}
	end := t.next.Add(int64(size))
	if end > maxKept {
		return kept{}
	}
	return kept{file: t.file, at: end - int64(size)}
}

// write keeps the next bytes, until they show that the file is no text.
func (k *kept) write(p []byte) error {
	if k.file == nil {
		return nil
	}
	if k.done == 0 && !isText(p) {
		k.file = nil
		return nil
	}
	n, err := k.file.WriteAt(p, k.at+k.done)
	if err != nil {
		return fmt.Errorf("keep the text as it was: %w", err)
	}
	k.done += int64(n)
	return nil
}

// settle notes what was kept of a file that was read to its end.
func (t *texts) settle(i int, s *sink) error {
	if s.keep.file != nil {
		t.at[i] = s.keep.at
	}
	return nil
}

// isText is git's rule: no NUL among the first bytes.
func isText(p []byte) bool { return bytes.IndexByte(p[:min(len(p), textSniff)], 0) < 0 }
