// Package containment is the one object that says how an attempt was contained:
// `baildock.containment-evidence`, version 1 (req P1, P2). Reports, bundles, pages and artifacts
// show it; none has a second truth beside it.
//
//	e := containment.Of(&attempt, containment.Blobs{Recipe: recipe, Values: values})
//	b, err := e.Marshal()          // canonical JSON within its bounds
//	e, err = containment.Parse(b)
//
// It is a pure view of the attempt's events and of the blobs they name. Where a blob isn't at hand, the
// text is Withheld. Each section has a state of its own, so that one that was never reached doesn't read
// like one that went well: what was requested, the preflight, the image, the controls, the
// environment, the workspace, the execution, the cleanup. A control is held only when it was observed
// on the container that ran, and equal; asked for, accepted by the daemon, or seen in another
// container, it has another word.
//
// An attempt under another profile than contained/v1 has the same sections; its containment is
// not_applicable, and preflight and workspace with it.
//
// Nothing in the object comes from free text. Codes, names and references have closed shapes, and
// what doesn't have its shape reads Unreadable. So no host path, no value of the environment and no
// output can be in it. Places have portable names: ${REPOSITORY_ROOT} and ${RUN_ROOT}. A container is
// named by a short hash.
package containment
