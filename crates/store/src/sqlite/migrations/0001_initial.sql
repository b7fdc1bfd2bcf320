-- 'ADJT': tells our files from those of other programs.
PRAGMA application_id = 1094994516;

-- Times are RFC 3339 text in UTC with nine decimals: exact, readable, and in order as text.

CREATE TABLE task (
    user_id      TEXT NOT NULL,
    id           INTEGER NOT NULL CHECK (id > 0),
    description  TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    completed_at TEXT,
    PRIMARY KEY (user_id, id)
) STRICT, WITHOUT ROWID;

-- The highest id a user's tasks ever had: a deleted task's id is not given again.
CREATE TABLE task_counter (
    user_id TEXT NOT NULL PRIMARY KEY,
    last_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Written with the change itself, so that the same key again changes nothing.
CREATE TABLE applied_change (
    user_id TEXT NOT NULL,
    key     TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at      TEXT NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
    key         INTEGER PRIMARY KEY,
    user_id     TEXT NOT NULL,
    id          TEXT NOT NULL,
    title       TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    updated_at  TEXT NOT NULL,
    next_seq    INTEGER NOT NULL DEFAULT 1,
    -- What follows from inbox and events, kept up to date in the same transaction, so that looking for work is a look
    -- into an index.
    untaken     INTEGER NOT NULL DEFAULT 0,
    turn        TEXT,
    parked_seq  INTEGER,
    waiting     TEXT NOT NULL DEFAULT '[]',
    unsettled   INTEGER GENERATED ALWAYS AS (untaken > 0 OR (turn IS NOT NULL AND parked_seq IS NULL)) VIRTUAL,
    -- Who runs it: a matter of liveness only.
    lease_by    TEXT,
    lease_until TEXT,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX conversation_recent ON conversation (user_id, updated_at);
CREATE INDEX conversation_unsettled ON conversation (updated_at) WHERE unsettled = 1;
CREATE INDEX conversation_parked ON conversation (user_id) WHERE parked_seq IS NOT NULL;

CREATE TABLE inbox (
    accepted     INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    v            INTEGER NOT NULL,
    body         TEXT NOT NULL,
    at           TEXT NOT NULL,
    taken_seq    INTEGER,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX inbox_untaken ON inbox (conversation, accepted) WHERE taken_seq IS NULL;

CREATE TABLE event (
    conversation INTEGER NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    v            INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    turn         TEXT,
    step         TEXT,
    body         TEXT NOT NULL,
    at           TEXT NOT NULL,
    PRIMARY KEY (conversation, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_once ON event (conversation, step, kind) WHERE step IS NOT NULL;

CREATE TABLE decision (
    number          INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation    INTEGER NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    conversation_id TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    id              TEXT NOT NULL,
    started_at      TEXT NOT NULL,
    ended_at        TEXT,
    message         TEXT NOT NULL,
    message_chars   INTEGER NOT NULL,
    intent          TEXT,
    kind            TEXT,
    outcome         TEXT,
    content         TEXT,
    model_provider  TEXT NOT NULL,
    model_name      TEXT NOT NULL,
    model_calls     INTEGER NOT NULL,
    iterations      INTEGER NOT NULL,
    input_tokens    INTEGER,
    output_tokens   INTEGER,
    cached_tokens   INTEGER,
    thinking_tokens INTEGER,
    cost_usd        REAL,
    model_ms        INTEGER NOT NULL,
    tool_ms         INTEGER NOT NULL,
    total_ms        INTEGER,
    error_code      TEXT,
    raw_response    TEXT,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX decision_recent ON decision (user_id, started_at);
CREATE INDEX decision_conversation ON decision (conversation);

CREATE TABLE tool_invocation (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Empty for a call a human made without a model.
    conversation INTEGER REFERENCES conversation (key) ON DELETE CASCADE,
    user_id      TEXT NOT NULL,
    decision     TEXT NOT NULL,
    id           TEXT NOT NULL,
    tool         TEXT NOT NULL,
    arguments    TEXT NOT NULL,
    success      INTEGER NOT NULL,
    data         TEXT,
    error        TEXT,
    ms           INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    at           TEXT NOT NULL,
    UNIQUE (user_id, decision, id)
) STRICT;
CREATE INDEX tool_invocation_conversation ON tool_invocation (conversation);
