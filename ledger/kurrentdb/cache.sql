-- Form 1: what a store knows of its ledger without asking the cluster. Deleting the file loses
-- nothing.

CREATE TABLE leaves (
  idx      INTEGER PRIMARY KEY,           -- the event's index
  stream   TEXT    NOT NULL,
  version  INTEGER NOT NULL,
  commits  INTEGER NOT NULL,              -- commit and prepare position in $all
  prepares INTEGER NOT NULL,
  nodes    BLOB    NOT NULL               -- hashes of the subtrees this leaf completes: its own first, 32 bytes each
) STRICT;

CREATE UNIQUE INDEX leaves_place ON leaves (stream, version);

-- Streams whose metadata hides events now.
CREATE TABLE hidden (
  stream TEXT PRIMARY KEY,
  why    TEXT NOT NULL
) STRICT;

CREATE TABLE about (ledger TEXT NOT NULL) STRICT;
