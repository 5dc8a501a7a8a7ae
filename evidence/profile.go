package evidence

import "fmt"

// ProfileName names a containment profile.
type ProfileName string

// ProfileCommand runs one command over a read-only source with a scratch tmpfs.
const ProfileCommand ProfileName = "command/v1"

// Profile is one table: everything a contained command gets, and every control compared before
// it starts (req C0). Its digest is in every request and record, so a run says which table held.
type Profile struct {
	Version     uint          `cbor:"1,keyasint" json:"version"` // 1
	Name        ProfileName   `cbor:"2,keyasint" json:"name"`
	UID         uint32        `cbor:"3,keyasint" json:"uid"`
	GID         uint32        `cbor:"4,keyasint" json:"gid"`
	Hostname    string        `cbor:"5,keyasint" json:"hostname"`
	WorkDir     string        `cbor:"6,keyasint" json:"work_dir"`
	SourcePath  string        `cbor:"7,keyasint" json:"source_path"`  // read-only bind of the snapshot
	ScratchPath string        `cbor:"8,keyasint" json:"scratch_path"` // bounded tmpfs
	Environment []EnvVar      `cbor:"9,keyasint" json:"environment"`  // added to the recipe's
	Injected    []string      `cbor:"10,keyasint" json:"injected"`    // names Docker adds by itself
	Network     string        `cbor:"11,keyasint" json:"network"`
	Nofile      uint64        `cbor:"12,keyasint" json:"nofile"`   // soft and hard
	Core        uint64        `cbor:"13,keyasint" json:"core"`     // bytes, soft and hard
	Controls    []ControlSpec `cbor:"14,keyasint" json:"controls"` // in ID order
	Fields      []FieldRule   `cbor:"15,keyasint" json:"fields"`   // closed world, sorted by path
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
	FieldAny   FieldTest = "any"   // decided by the daemon, carries no privilege; not compared
)

// Digest is the SHA-256 of the canonical table.
func (p Profile) Digest() ProfileDigest { return Sum[profileMeaning](Marshal(p)) }

// ProfileByName returns the built-in table of that name.
func ProfileByName(name ProfileName) (Profile, error) {
	if name == ProfileCommand {
		return commandProfile, nil
	}
	return Profile{}, fmt.Errorf("profile %q is not known; this version has %s", name, ProfileCommand)
}

// profileByDigest returns the built-in table with that digest.
func profileByDigest(d ProfileDigest) (Profile, bool) {
	if d == commandTable {
		return commandProfile, true
	}
	return Profile{}, false
}

// commandTable is computed once: folds compare it for every attempt.
var commandTable = commandProfile.Digest()
