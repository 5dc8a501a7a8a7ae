package evidence

import (
	"fmt"
	"slices"
)

// ProfileName names a containment profile.
type ProfileName string

const (
	// ProfileCommand runs one command over a read-only source with a scratch tmpfs.
	ProfileCommand ProfileName = "command/v1"
	// ProfileContained runs an agent in a writable copy of a source, as a user that the recipe names.
	ProfileContained ProfileName = "contained/v1"
)

// Profile is one table: everything a contained command gets, and every control compared before
// it starts (req C0). Its digest is in every request and record, so a run says which table held.
type Profile struct {
	Version     uint          `cbor:"1,keyasint" json:"version"` // 1
	Name        ProfileName   `cbor:"2,keyasint" json:"name"`
	UID         uint32        `cbor:"3,keyasint" json:"uid"` // 0: the recipe's terms name it
	GID         uint32        `cbor:"4,keyasint" json:"gid"` // 0: the recipe's terms name it
	Hostname    string        `cbor:"5,keyasint" json:"hostname"`
	WorkDir     string        `cbor:"6,keyasint" json:"work_dir"`
	SourcePath  string        `cbor:"7,keyasint" json:"source_path"`  // bind of the snapshot, or of the workspace
	ScratchPath string        `cbor:"8,keyasint" json:"scratch_path"` // bounded tmpfs
	Environment []EnvVar      `cbor:"9,keyasint" json:"environment"`  // added to the recipe's
	Injected    []string      `cbor:"10,keyasint" json:"injected"`    // names Docker adds by itself
	Network     Network       `cbor:"11,keyasint" json:"network"`
	Nofile      uint64        `cbor:"12,keyasint" json:"nofile"`   // soft and hard
	Core        uint64        `cbor:"13,keyasint" json:"core"`     // bytes, soft and hard
	Controls    []ControlSpec `cbor:"14,keyasint" json:"controls"` // in ID order
	Fields      []FieldRule   `cbor:"15,keyasint" json:"fields"`   // closed world, sorted by path

	Writable bool         `cbor:"16,keyasint,omitempty" json:"writable,omitempty"` // the source is a workspace, bound read-write
	Limits   *LimitRanges `cbor:"17,keyasint,omitempty" json:"limits,omitempty"`   // none: those of command/v1
}

// Network is the one network of a container, by the name the daemon knows it by.
type Network string

const (
	NetworkNone   Network = "none"   // no interface but the loopback's
	NetworkBridge Network = "bridge" // the daemon's own bridge: it restricts nothing
)

// User is the UID and GID a recipe runs as under the table.
func (p Profile) User(r Recipe) (uid, gid uint32) {
	if p.UID == 0 && r.Contained != nil {
		return r.Contained.UID, r.Contained.GID
	}
	return p.UID, p.GID
}

// ControlSpec is one row of a profile's control table.
type ControlSpec struct {
	ID   ControlID      `cbor:"1,keyasint" json:"id"`
	Name string         `cbor:"2,keyasint" json:"name"`
	Full []EvidenceKind `cbor:"3,keyasint" json:"full"` // any one of these carries a full claim (req C6)
}

// FieldRule says what one field of an inspected container must be (req C5). A field that no rule
// names, and that holds no field a rule names, must be zero: null, false, 0, "", or an empty list
// or object. An object of zeros is not zero, because its keys can mean something (a volume). Several
// rules may name one field when it decides several controls.
type FieldRule struct {
	Path    string    `cbor:"1,keyasint" json:"path"`              // dotted JSON path in the inspect reply, e.g. HostConfig.Memory
	Rule    FieldTest `cbor:"2,keyasint" json:"rule"`              // how it is compared
	Want    string    `cbor:"3,keyasint,omitempty" json:"want"`    // compact JSON, with ${…} standing for a value of the run
	Control ControlID `cbor:"4,keyasint,omitempty" json:"control"` // the control it belongs to; 0 = bookkeeping of the daemon
}

// FieldTest is how a FieldRule compares.
type FieldTest string

const (
	FieldEqual FieldTest = "equal" // equals Want; null, an empty list or object, and an absent field are one
	FieldOneOf FieldTest = "oneof" // equals one element of the JSON list Want
	FieldKeys  FieldTest = "keys"  // an object with exactly the keys of the JSON list Want; its fields have rules of their own
	FieldHolds FieldTest = "holds" // a list with every element of Want, any other being a path under /proc or /sys: masks only take away
	FieldNulls FieldTest = "nulls" // an object whose fields are all null, whatever their names; Want is {}
	FieldAny   FieldTest = "any"   // decided by the daemon, carries no privilege; not compared
)

// Digest is the SHA-256 of the canonical table.
func (p Profile) Digest() ProfileDigest { return Sum[profileMeaning](Marshal(p)) }

// profiles holds every table this version knows. A profile of several variants has one table each.
var profiles = []Profile{commandProfile, containedProfile(NetworkNone), containedProfile(NetworkBridge)}

// Profiles returns every table this version knows.
func Profiles() []Profile { return slices.Clone(profiles) }

// ProfileByName returns the first built-in table of that name: of a profile with variants, the one
// without a network.
func ProfileByName(name ProfileName) (Profile, error) {
	for _, p := range profiles {
		if p.Name == name {
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("profile %q is not known; this version has %s and %s", name, ProfileCommand, ProfileContained)
}

// Table returns the built-in table that a recipe runs under: that of its profile and, where the
// profile has variants, of its network.
func (r Recipe) Table() (Profile, error) {
	p, err := ProfileByName(r.Profile)
	if err != nil || r.Contained == nil {
		return p, err
	}
	for _, v := range profiles {
		if v.Name == r.Profile && v.Network == r.Contained.Network {
			return v, nil
		}
	}
	return Profile{}, fmt.Errorf("profile %s has no network %q; it has %s and %s", r.Profile, r.Contained.Network, NetworkNone, NetworkBridge)
}

// ProfileByDigest returns the built-in table with that digest; ok is false when this version has
// none (docs/decisions/0006).
func ProfileByDigest(d ProfileDigest) (p Profile, ok bool) {
	p, ok = tables[d]
	return p, ok
}

// tables is computed once: folds look tables up for every attempt.
var tables = func() map[ProfileDigest]Profile {
	m := map[ProfileDigest]Profile{}
	for _, p := range profiles {
		m[p.Digest()] = p
	}
	return m
}()
