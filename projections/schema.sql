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
  registered     INTEGER NOT NULL,    -- time
  claimed        INTEGER,             -- time
  finished       INTEGER,             -- time
  first_index    INTEGER NOT NULL,    -- of its registration
  last_index     INTEGER NOT NULL,    -- of its stream's last event
  finished_index INTEGER,             -- of its AttemptFinished
  version        INTEGER NOT NULL,    -- of its stream's last event
  problem        TEXT                 -- why its stream could not be read further
) STRICT, WITHOUT ROWID;

CREATE INDEX attempts_by_index    ON attempt_rows (first_index);
CREATE INDEX attempts_by_outcome  ON attempt_rows (outcome, first_index);
CREATE INDEX attempts_by_revision ON attempt_rows (revision, first_index);
CREATE INDEX attempts_by_change   ON attempt_rows (change_id, first_index);
CREATE INDEX attempts_open        ON attempt_rows (first_index) WHERE state <> 'finished';

-- The same rows, with times people can read.
CREATE VIEW attempts AS
SELECT attempt, state, generation, outcome, detail, causes, exit_status, exit_code, claim, reductions, profile,
       subject, revision, manifest, recipe, environment, toolchain, request, runtime, change_id, change_version,
       context, record, cleanup, open_custody, snapshot, stdout_bytes, stderr_bytes, duration AS duration_ns, home,
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
