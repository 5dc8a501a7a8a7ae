package docker

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/baildock/baildock/evidence"
)

// mounts reads the process's own mount table.
func (s *sight) mounts() {
	source := evidence.CtlSource
	if s.plan.Profile.Writable {
		source = evidence.CtlWorkspace
	}
	ids := []evidence.ControlID{evidence.CtlReadOnlyRoot, source, evidence.CtlScratch, evidence.CtlNoMounts}
	text, err := s.proc.read("mountinfo")
	if err != nil {
		s.unavailable(err, ids...)
		return
	}
	if text == "" { // the mount namespace is left before the process is reaped
		s.because(reasonGone, errors.New("the process has no mounts any more"), ids...)
		return
	}
	mounts, err := parseMounts(text)
	if err != nil {
		s.because(reasonMalformed, err, ids...)
		return
	}
	s.mounted(mounts, evidence.CtlReadOnlyRoot, bind{target: "/", readOnly: true})
	binds := bindsOf(s.plan)
	s.mounted(mounts, source, binds...)
	s.scratch(mounts)
	own := []string{"/", s.plan.Profile.ScratchPath}
	for _, b := range binds {
		own = append(own, b.target)
	}
	foreign := foreignMounts(mounts, own...)
	s.equal(evidence.CtlNoMounts, "none", strings.Join(append([]string{"none"}, foreign...)[min(1, len(foreign)):], " "), len(foreign) == 0)
}

// mounted compares how binds are mounted: read-only, or writable.
func (s *sight) mounted(mounts []mountPoint, id evidence.ControlID, binds ...bind) {
	var expected, found []string
	for _, b := range binds {
		want, is := "rw", "not mounted"
		if b.readOnly {
			want = "ro"
		}
		if at, ok := mountAt(mounts, b.target); ok {
			is = at.options[0]
		}
		expected, found = append(expected, want), append(found, is)
	}
	s.equal(id, strings.Join(expected, " "), strings.Join(found, " "), slices.Equal(expected, found))
}

func (s *sight) scratch(mounts []mountPoint) {
	prof := s.plan.Profile
	uid, gid := prof.User(s.plan.Recipe)
	pages := (s.plan.Recipe.Limits.Scratch + tmpfsPageSize - 1) / tmpfsPageSize
	expected := fmt.Sprintf("tmpfs rw nosuid nodev noexec size=%dk mode=700 uid=%d gid=%d", pages*tmpfsPageSize/1024, uid, gid)
	m, ok := mountAt(mounts, prof.ScratchPath)
	if !ok {
		s.equal(evidence.CtlScratch, expected, "not mounted", false)
		return
	}
	found := []string{m.kind}
	for _, o := range []string{"rw", "nosuid", "nodev", "noexec"} {
		if slices.Contains(m.options, o) {
			found = append(found, o)
		}
	}
	for _, k := range []string{"size", "mode", "uid", "gid"} {
		found = append(found, k+"="+m.superValue(k))
	}
	text := strings.Join(found, " ")
	s.equal(evidence.CtlScratch, expected, text, text == expected)
}
