-- Tasks that were deleted, to be brought back for a while.
CREATE TABLE adjutant_deleted_task (
    user_id      TEXT COLLATE "C" NOT NULL,
    id           BIGINT NOT NULL CHECK (id > 0),
    description  TEXT COLLATE "C" NOT NULL,
    created_at   TEXT COLLATE "C" NOT NULL,
    updated_at   TEXT COLLATE "C" NOT NULL,
    completed_at TEXT COLLATE "C",
    deleted_at   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, id)
);
-- The numbers of tasks that are lines of notes. `scope` is the SHA-256 of user and vault: a path may be longer than an index takes.
CREATE TABLE adjutant_task_number (
    scope   TEXT COLLATE "C" NOT NULL,
    id      BIGINT NOT NULL CHECK (id > 0),
    user_id TEXT COLLATE "C" NOT NULL,
    vault   TEXT COLLATE "C" NOT NULL,
    at      TEXT COLLATE "C" NOT NULL,
    v       BIGINT NOT NULL,
    body    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, id)
);
CREATE INDEX adjutant_task_number_user ON adjutant_task_number (user_id);
