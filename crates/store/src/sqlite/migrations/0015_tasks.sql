-- Tasks that were deleted, to be brought back for a while.
CREATE TABLE adjutant_deleted_task (
    user_id      TEXT NOT NULL,
    id           INTEGER NOT NULL CHECK (id > 0),
    description  TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    completed_at TEXT,
    deleted_at   TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) STRICT, WITHOUT ROWID;
-- The numbers of tasks that are lines of notes. `scope` is the SHA-256 of user and vault: a path may be longer than an index takes.
CREATE TABLE adjutant_task_number (
    scope   TEXT NOT NULL,
    id      INTEGER NOT NULL CHECK (id > 0),
    user_id TEXT NOT NULL,
    vault   TEXT NOT NULL,
    at      TEXT NOT NULL,
    v       INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (scope, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX adjutant_task_number_user ON adjutant_task_number (user_id);
