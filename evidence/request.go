package evidence

// requestDomain separates request digests from every other hash.
const requestDomain = "baildock.execution-request.v1"

// Request is everything one execution is bound to (req A3).
type Request struct {
	Attempt     AttemptID
	Generation  uint64 // the running generation
	Binding     *Binding
	Revision    Revision
	Recipe      RecipeDigest
	Toolchain   *ToolchainDigest
	Environment EnvironmentDigest
	Profile     ProfileDigest
}

// Revision is what a request binds of its subject: a commit's object name, or a directory's
// manifest digest. Exactly one is set.
type Revision struct {
	Commit   string
	Manifest *ManifestDigest
}

// Digest hashes the canonical array of the domain and the eleven bindings, in the order of
// req A3. A binding that doesn't apply is null.
func (r Request) Digest() RequestDigest {
	a := []any{requestDomain, string(r.Attempt), r.Generation, nil, nil, nil, nil, nil,
		r.Recipe, nil, r.Environment, r.Profile}
	if b := r.Binding; b != nil {
		a[3], a[4], a[5], a[6] = b.Repository, string(b.Change), b.Version, b.Context
	}
	if r.Revision.Manifest != nil {
		a[7] = *r.Revision.Manifest
	} else {
		a[7] = r.Revision.Commit
	}
	if r.Toolchain != nil {
		a[9] = *r.Toolchain
	}
	return Sum[requestMeaning](Marshal(a))
}
