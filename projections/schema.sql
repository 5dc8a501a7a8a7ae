-- Where the projection stands.
CREATE TABLE position (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  form TEXT    NOT NULL,              -- hash of what makes the rows; another one means rebuild
  next INTEGER NOT NULL,              -- index of the next event to read
  leaf BLOB    NOT NULL               -- leaf hash of the event before it; empty at 0
) STRICT;

-- One row an attempt. Digests are sha256:<hex>, times ns since the Unix epoch as their writer
-- claimed them. NULL: not there (yet).
CREATE TABLE attempt_rows (
  attempt        TEXT    PRIMARY KEY,
  state          TEXT    NOT NULL,    -- pending, running, finished; empty: not even its registration can be read
  generation     INTEGER NOT NULL,    -- 0 pending, 1 claimed, +1 per fence
  outcome        TEXT,                -- of a finished attempt: success, failed, …
  detail         TEXT,                -- the deciding cause; ok for success
  causes         TEXT,                -- every cause that holds, in order of precedence, with spaces between
  exit_status    INTEGER,             -- what baildock itself exits with for this outcome
  exit_code      INTEGER,             -- the command's own; NULL: it never ran to an end
  claim          TEXT    NOT NULL,    -- none, full, reduced
  reductions     TEXT    NOT NULL,    -- reasons for a reduced claim, with spaces between
  profile        TEXT    NOT NULL,
  subject        TEXT    NOT NULL,    -- commit, directory
  revision       TEXT,                -- commit: object name; directory: manifest digest, once it is materialised
  manifest       TEXT,                -- digest of the materialised source
  recipe         TEXT    NOT NULL,
  environment    TEXT    NOT NULL,
  toolchain      TEXT,
  request        TEXT,                -- what the execution was bound to
  runtime        TEXT,                -- names the runtime's stream
  change_id      TEXT,                -- NULL: ad hoc
  change_version INTEGER,
  context        TEXT,
  record         TEXT,                -- digest of the record of a finished attempt
  cleanup        TEXT    NOT NULL,    -- none: nothing was created; open, abandoned, or how the container ended
  open_custody   INTEGER NOT NULL,    -- daemon objects that may still exist
  snapshot       TEXT,                -- held, gone, left
  stdout_bytes   INTEGER,             -- bytes kept
  stderr_bytes   INTEGER,
  duration       INTEGER,             -- ns from the daemon's start reply to the exit
  home           TEXT,                -- ID of the home that claimed it
  actor          TEXT    NOT NULL,    -- who registered it
  registered     INTEGER NOT NULL,    -- time
  claimed        INTEGER,             -- time
  finished       INTEGER,             -- time
  first_index    INTEGER NOT NULL,    -- of its registration
  last_index     INTEGER NOT NULL,    -- of its stream's last event
  finished_index INTEGER,             -- of its AttemptFinished
  version        INTEGER NOT NULL,    -- of its stream's last event
  problem        TEXT                 -- why its stream could not be read further
) STRICT, WITHOUT ROWID;

-- The same rows, with times people can read.
CREATE VIEW attempts AS
SELECT attempt, state, generation, outcome, detail, causes, exit_status, exit_code, claim, reductions, profile,
       subject, revision, manifest, recipe, environment, toolchain, request, runtime, change_id, change_version,
       context, record, cleanup, open_custody, snapshot, stdout_bytes, stderr_bytes, duration AS duration_ns, home, actor,
       strftime('%Y-%m-%dT%H:%M:%S', registered / 1000000000, 'unixepoch') || printf('.%09dZ', registered % 1000000000) AS registered_at,
       strftime('%Y-%m-%dT%H:%M:%S', claimed    / 1000000000, 'unixepoch') || printf('.%09dZ', claimed    % 1000000000) AS claimed_at,
       strftime('%Y-%m-%dT%H:%M:%S', finished   / 1000000000, 'unixepoch') || printf('.%09dZ', finished   % 1000000000) AS finished_at,
       first_index, last_index, finished_index, version, problem
FROM attempt_rows;

-- Attempts that somebody may still have to finish.
CREATE VIEW open_attempts AS SELECT * FROM attempts WHERE state <> 'finished';

-- How many attempts ended how.
CREATE VIEW outcomes AS
SELECT outcome, detail, count(*) AS attempts FROM attempt_rows
WHERE state = 'finished' AND problem IS NULL GROUP BY outcome, detail;

-- Names that repeat: streams, event types, actors. In the order they first appear.
CREATE TABLE words (
  id   INTEGER PRIMARY KEY,
  word TEXT NOT NULL UNIQUE
) STRICT;

-- One row an event, in the ledger's order.
CREATE TABLE timeline_rows (
  idx     INTEGER PRIMARY KEY,        -- index in the ledger
  stream  INTEGER NOT NULL,           -- words
  version INTEGER NOT NULL,
  type    INTEGER NOT NULL,           -- words
  time    INTEGER NOT NULL,           -- ns, as its writer claimed
  actor   INTEGER,                    -- words; NULL: a user's event, or one that can't be read
  bytes   INTEGER NOT NULL            -- of its data
) STRICT;

CREATE VIEW timeline AS
SELECT idx AS "index", s.word AS stream, version, t.word AS type,
       strftime('%Y-%m-%dT%H:%M:%S', time / 1000000000, 'unixepoch') || printf('.%09dZ', time % 1000000000) AS time,
       a.word AS actor, bytes
FROM timeline_rows r JOIN words s ON s.id = r.stream JOIN words t ON t.id = r.type LEFT JOIN words a ON a.id = r.actor;

-- The oldest and newest time in each run of 4,096 events. Times nearly follow the order, so a question
-- about a span of time reads only the runs that may hold it.
CREATE TABLE timeline_spans (
  span   INTEGER PRIMARY KEY,         -- idx / 4096
  oldest INTEGER NOT NULL,
  newest INTEGER NOT NULL
) STRICT;

-- One row a daemon object that exists, existed or may exist.
CREATE TABLE custody_rows (
  attempt     TEXT    NOT NULL,
  handle      TEXT    NOT NULL,       -- names the custody
  kind        TEXT    NOT NULL,       -- container, network
  name        TEXT    NOT NULL,       -- physical name; never selects a removal target
  container   TEXT,                   -- full ID; NULL: not known yet
  request     TEXT    NOT NULL,
  engine      TEXT    NOT NULL,       -- the daemon's own ID
  state       TEXT,                   -- how the last try to close it ended
  open        INTEGER NOT NULL,       -- 1: it may still exist and nobody gave it up
  abandoned   INTEGER NOT NULL,       -- 1: an operator gave it up
  unconfirmed TEXT,                   -- why the last try to close it failed
  last_index  INTEGER NOT NULL,       -- of its attempt's last event
  taken_index INTEGER NOT NULL,       -- of its CustodyTaken
  taken       INTEGER NOT NULL,       -- time
  actor       TEXT    NOT NULL,       -- who took it
  PRIMARY KEY (attempt, handle)
) STRICT, WITHOUT ROWID;

CREATE VIEW custody AS
SELECT attempt, handle, kind, name, container, request, engine, state, open, abandoned, unconfirmed, last_index, taken_index,
       strftime('%Y-%m-%dT%H:%M:%S', taken / 1000000000, 'unixepoch') || printf('.%09dZ', taken % 1000000000) AS taken_at, actor
FROM custody_rows;

CREATE VIEW open_custody AS SELECT * FROM custody WHERE open = 1;

-- One row a change.
CREATE TABLE change_rows (
  change_id          TEXT    PRIMARY KEY,
  repository         TEXT    NOT NULL,
  version            INTEGER NOT NULL,  -- the present one; 0: none was added
  revision           TEXT,
  context            TEXT,              -- digest; NULL: none is set, or an integration ended it
  policy             TEXT,
  epoch              INTEGER,
  attempts           INTEGER NOT NULL,  -- listed for any version
  approvals          INTEGER NOT NULL,  -- of the present context, void ones among them
  integrated_version INTEGER,
  first_index        INTEGER NOT NULL,
  last_index         INTEGER NOT NULL,
  problem            TEXT               -- why its stream could not be read further
) STRICT, WITHOUT ROWID;

CREATE VIEW changes AS SELECT * FROM change_rows;

-- One row a policy.
CREATE TABLE policy_rows (
  policy      TEXT    PRIMARY KEY,
  epoch       INTEGER NOT NULL,       -- the present one
  first_index INTEGER NOT NULL,
  last_index  INTEGER NOT NULL        -- of its last advance
) STRICT, WITHOUT ROWID;

CREATE VIEW policies AS SELECT * FROM policy_rows;

-- One row an approval or integration.
CREATE TABLE admission_rows (
  idx            INTEGER PRIMARY KEY, -- of the judgement
  change_id      TEXT    NOT NULL,
  change_version INTEGER NOT NULL,
  revision       TEXT,                -- of that version; NULL: its stream could not be read so far
  context        TEXT    NOT NULL,
  kind           TEXT    NOT NULL,    -- approval, integration
  attempts       TEXT    NOT NULL,    -- relied on, with spaces between
  void_index     INTEGER,             -- the event that came before it and changes an epoch or a context; NULL: it stands
  time           INTEGER NOT NULL,
  actor          TEXT    NOT NULL
) STRICT;

CREATE VIEW admissions AS
SELECT idx AS "index", change_id, change_version, revision, context, kind, attempts, void_index, void_index IS NULL AS stands,
       strftime('%Y-%m-%dT%H:%M:%S', time / 1000000000, 'unixepoch') || printf('.%09dZ', time % 1000000000) AS time, actor
FROM admission_rows;

-- One row a runtime: an engine on a machine in one build.
CREATE TABLE runtime_rows (
  runtime     TEXT    PRIMARY KEY,    -- digest; names its stream
  engine      TEXT,                   -- NULL: only its stream was seen
  machine     TEXT,                   -- NULL: it has no ID
  version     TEXT,
  api         TEXT,
  kernel      TEXT,
  os          TEXT,
  arch        TEXT,
  runner      TEXT,                   -- runc, with its version
  first_index INTEGER NOT NULL,
  seen        INTEGER NOT NULL,       -- time, of the first event that tells of it
  probed      INTEGER                 -- index of the last probe that saw the seccomp filter in place
) STRICT, WITHOUT ROWID;

-- Whether a runtime is qualified is for one profile and corpus only, and what admission computes; here stands
-- what its canaries came to when each was last observed.
CREATE VIEW runtimes AS
SELECT runtime, engine, machine, version, api, kernel, os, arch, runner, first_index,
       strftime('%Y-%m-%dT%H:%M:%S', seen / 1000000000, 'unixepoch') || printf('.%09dZ', seen % 1000000000) AS first_seen_at, probed,
       (SELECT count(*) FROM attempt_rows a WHERE a.runtime = r.runtime) AS attempts, 
       (SELECT CASE count(*) WHEN 0 THEN 'no canary observed' ELSE printf('%d of %d canaries passed', sum(q.verdict = 'passed'), count(*)) END
        FROM qualification_rows q WHERE q.idx IN (SELECT max(idx) FROM qualification_rows l WHERE l.runtime = r.runtime AND l.corpus IS NOT NULL
          GROUP BY l.profile, l.corpus, l.canary)) AS qualification
FROM runtime_rows r;

-- One row an observation that says what a runtime holds: a probe, or one canary of a corpus.
CREATE TABLE qualification_rows (
  idx     INTEGER PRIMARY KEY,        -- of the observation
  runtime TEXT    NOT NULL,           -- digest; names the stream it lies in
  profile TEXT,                       -- digest of the profile's table; NULL: it is of no profile
  image   TEXT    NOT NULL,           -- what ran
  corpus  TEXT,                       -- digest of the corpus; NULL: a probe
  canary  TEXT    NOT NULL,           -- what was tried: seccomp for the probe, else a canary's name
  verdict TEXT    NOT NULL,           -- held, not_held; of a canary passed, failed, not_applicable, which counts only as far as its attempt bears it out
  attempt TEXT    NOT NULL,           -- that ran it
  time    INTEGER NOT NULL
) STRICT;

CREATE VIEW qualifications AS
SELECT idx AS "index", runtime, profile, image, corpus, canary, verdict, attempt,
       strftime('%Y-%m-%dT%H:%M:%S', time / 1000000000, 'unixepoch') || printf('.%09dZ', time % 1000000000) AS time
FROM qualification_rows;
