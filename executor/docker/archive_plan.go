package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// archiveEntry is one file or directory of the layer.
type archiveEntry struct {
	path string // in the image, without the leading slash
	mode int64  // 0644 or 0755
	size int64  // bytes of a file, -1 for a directory
	host string
	seen fileStamp // the file as it was listed
}

// fileStamp is what must be equal whenever a file is read.
type fileStamp struct {
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

func stampOf(st *unix.Stat_t) fileStamp {
	return fileStamp{dev: uint64(st.Dev), ino: st.Ino, mode: st.Mode, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}
}

// planner collects the entries of a layer.
type planner struct {
	entries map[string]archiveEntry
	bytes   int64
}

// planArchive lists what goes into the layer, sorted by path, every parent directory included.
func planArchive(ctx context.Context, files []ArchiveFile) ([]archiveEntry, error) {
	p := planner{entries: map[string]archiveEntry{}}
	given := map[string]bool{}
	for _, f := range files {
		if err := checkDestination(f.Dest); err != nil {
			return nil, err
		}
		if given[f.Dest] {
			return nil, refuseArchive(ArchiveConflict, f.Dest, "the destination is given twice")
		}
		given[f.Dest] = true
		if err := p.add(ctx, f.Host, f.Dest, f.Host); err != nil {
			return nil, err
		}
	}
	if len(p.entries) == 0 {
		return nil, refuseArchive(ArchiveHost, "", "there is nothing to put into the image; add a file with --add HOST:DEST")
	}
	entries := make([]archiveEntry, 0, len(p.entries))
	for _, e := range p.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b archiveEntry) int { return strings.Compare(a.path, b.path) })
	return entries, nil
}

// add lists one file, or one directory and what it holds. shown is what messages call it.
func (p *planner) add(ctx context.Context, host, dest, shown string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := checkDestination(dest); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(host, &st); err != nil {
		return refuseArchive(ArchiveHost, shown, "it can't be read: %v", err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if dest == "/" {
			return refuseArchive(ArchiveDestination, dest, "a file can't take the place of the root directory; name the file, as in /bin/tool")
		}
		return p.file(host, dest[1:], &st)
	case unix.S_IFDIR:
		return p.directory(ctx, host, dest, shown)
	case unix.S_IFLNK:
		return refuseArchive(ArchiveHost, shown, "links don't go into an image; give the file the link leads to")
	}
	return refuseArchive(ArchiveHost, shown, "neither file nor directory; leave it out")
}

func (p *planner) file(host, dest string, st *unix.Stat_t) error {
	if p.bytes += st.Size; st.Size > maxArchiveBytes || p.bytes > maxArchiveBytes {
		return refuseArchive(ArchiveTooLarge, "/"+dest, "the files are larger than %d bytes together", maxArchiveBytes)
	}
	mode := int64(0o644)
	if st.Mode&unix.S_IXUSR != 0 {
		mode = 0o755
	}
	if err := p.parents(dest); err != nil {
		return err
	}
	return p.put(archiveEntry{path: dest, mode: mode, size: st.Size, host: host, seen: stampOf(st)})
}

func (p *planner) directory(ctx context.Context, host, dest, shown string) error {
	if dest != "/" {
		if err := p.parents(dest[1:] + "/"); err != nil {
			return err
		}
	}
	names, err := p.names(host)
	if err != nil {
		return refuseArchive(ArchiveHost, shown, "the directory can't be read: %v", err)
	}
	for _, name := range names {
		if err := p.add(ctx, filepath.Join(host, name), path.Join(dest, name), filepath.Join(shown, name)); err != nil {
			return err
		}
	}
	return nil
}

// names reads a directory in chunks, so that a huge one is refused before it is held.
func (p *planner) names(host string) (names []string, err error) {
	fd, err := unix.Open(host, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), host)
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		chunk, err := f.Readdirnames(archiveChunk)
		names = append(names, chunk...)
		if err == io.EOF {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if len(p.entries)+len(names) > maxArchiveFiles {
			return nil, fmt.Errorf("more than %d files", maxArchiveFiles)
		}
	}
}

// parents puts every directory above dest.
func (p *planner) parents(dest string) error {
	for i := range len(dest) {
		if dest[i] != '/' {
			continue
		}
		if err := p.put(archiveEntry{path: dest[:i], mode: 0o755, size: -1}); err != nil {
			return err
		}
	}
	return nil
}

// put adds an entry. Directories may meet; anything else in one place is a conflict.
func (p *planner) put(e archiveEntry) error {
	other, taken := p.entries[e.path]
	if taken && other.size < 0 && e.size < 0 {
		return nil
	}
	if taken {
		return refuseArchive(ArchiveConflict, "/"+e.path, "two files, or a file and a directory, in one place")
	}
	if len(p.entries) >= maxArchiveFiles {
		return refuseArchive(ArchiveTooLarge, "", "more than %d files and directories", maxArchiveFiles)
	}
	p.entries[e.path] = e
	return nil
}

// copyTo writes the file's bytes and proves that they are those of the file listed.
func (e archiveEntry) copyTo(ctx context.Context, w io.Writer, buf []byte) (err error) {
	// O_NONBLOCK: a fifo put in the file's place must not block the open.
	fd, err := unix.Open(e.host, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refuseArchive(ArchiveHost, e.host, "it can't be opened as listed: %v", err)
	}
	f := os.NewFile(uintptr(fd), e.host)
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := e.unchanged(fd); err != nil {
		return err
	}
	left := e.size
	for left > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buf[:min(left, int64(len(buf)))])
		if err == io.EOF {
			return refuseArchive(ArchiveChanged, e.host, "it became shorter while it was read; try again when nothing writes there")
		}
		if err != nil {
			return fmt.Errorf("read %q for the image: %w", e.host, err)
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return fmt.Errorf("write image layer: %w", err)
		}
		left -= int64(n)
	}
	// Kernel files say they are empty and aren't.
	if n, err := f.Read(buf[:1]); n != 0 || err != io.EOF {
		return refuseArchive(ArchiveChanged, e.host, "it is longer than it said; copy it to an ordinary file first")
	}
	return e.unchanged(fd)
}

func (e archiveEntry) unchanged(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %q: %w", e.host, err)
	}
	if stampOf(&st) != e.seen {
		return refuseArchive(ArchiveChanged, e.host, "it changed while the image was made; try again when nothing writes there")
	}
	return nil
}
