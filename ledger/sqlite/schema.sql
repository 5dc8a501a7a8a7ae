-- Store form 1. application_id and user_version are set in the same transaction.

CREATE TABLE events (
  idx     INTEGER PRIMARY KEY,            -- the event's index: 0, 1, 2, ...
  stream  TEXT    NOT NULL,
  version INTEGER NOT NULL,               -- 0, 1, 2, ... in its stream
  nodes   BLOB    NOT NULL,               -- hashes of the subtrees this leaf completes: its own first, 32 bytes each
  prev    BLOB    NOT NULL,               -- leaf hash of the stream's previous event, empty at version 0
  type    TEXT    NOT NULL,
  time    INTEGER NOT NULL,               -- ns since the Unix epoch, the writer's claim
  media   TEXT    NOT NULL,
  meta    BLOB    NOT NULL,
  data    BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_place ON events (stream, version);

-- Events are only ever added.
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events never change'); END;
CREATE TRIGGER events_last BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never removed'); END;

CREATE TABLE checkpoints (
  size   INTEGER PRIMARY KEY,             -- leaves in the signed tree
  origin TEXT NOT NULL,
  root   BLOB NOT NULL,
  note   BLOB NOT NULL                    -- the signed note, exactly as signed
) STRICT;

CREATE TABLE blobs (
  id        INTEGER PRIMARY KEY,
  key       BLOB    NOT NULL UNIQUE,      -- SHA-256(salt, data)
  salt      BLOB    NOT NULL,             -- empty or 32 bytes; empty when forgotten
  size      INTEGER NOT NULL,             -- bytes of data; 0 when forgotten
  forgotten INTEGER NOT NULL              -- 1: the bytes were here and were removed
) STRICT;

CREATE TABLE blob_chunks (
  id   INTEGER PRIMARY KEY,               -- blobs.id * 1024 + number of the chunk
  data BLOB NOT NULL                      -- 1 MiB, less in the last chunk
) STRICT;

-- Counts the changes made only to settle the outcome of a commit that failed.
CREATE TABLE settled (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  times INTEGER NOT NULL
) STRICT;

INSERT INTO settled VALUES (1, 0);
