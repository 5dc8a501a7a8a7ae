package docker

import "time"

// Bounds of control calls (req C7).
const (
	controlDeadline = 5 * time.Second  // every call that reads or changes one object
	createDeadline  = 30 * time.Second // a cold first create unpacks image layers
	loadDeadline    = 10 * time.Minute // an image archive is unpacked while it is sent
	maxReply        = 256 << 10        // bytes of one reply; an inspect is about 5 KiB
	maxReplyHeader  = 32 << 10         // bytes of one reply's header; the daemon sends under 1 KiB
	maxMessage      = 512              // bytes kept of a daemon's error message
)

// Bounds of streams (req C7). Their start has the control deadline; how long they last is their
// caller's context.
const (
	maxWaitReply  = 64 << 10 // one exit status, with an error text
	maxLoadReply  = 1 << 20  // progress lines of a quiet load
	maxFrame      = 1 << 20  // declared bytes of one output frame; the daemon copies 32 KiB at a time
	frameBuffer   = 32 << 10 // bytes of output handed on at once
	maxEvent      = 1 << 20  // one event carries all labels of its container, also of foreign ones
	eventQueue    = 8192     // events waiting for a slow reader before the subscription is given up
	maxImages     = 4096     // images in one list
	maxContainers = 1024     // containers with the same two labels; one is the rule
	maxLabelled   = 4096     // objects of one kind with any label of ours; the reply's bound comes first
)

// Bounds of an image made from local files.
const (
	maxArchiveFiles = 20_000  // files and directories; a toolchain has a few thousand
	maxArchiveBytes = 2 << 30 // all files together; the daemon unpacks them twice
	archiveBuffer   = 256 << 10
	archiveChunk    = 512 // names read from a directory at once
)

// Bounds of what a reply may hold.
const (
	maxReplyDepth = 16  // nesting of an inspect reply; real ones have 6
	maxFact       = 128 // bytes of one identity text
)

// Bounds of the host's own files about a container's process.
const (
	maxProcFile   = 1 << 20                // a mountinfo of thousands of mounts
	settleLimit   = 250 * time.Millisecond // longest wait for the runtime's init to load the filter
	settleStep    = time.Millisecond       // between two looks
	tmpfsPageSize = 4096                   // smallest unit the kernel rounds sizes to
)

// Engine API versions.
const (
	minAPI     = "1.41" // first with private cgroup namespaces
	seccompAPI = "1.42" // first whose engines understand seccomp=builtin
)
