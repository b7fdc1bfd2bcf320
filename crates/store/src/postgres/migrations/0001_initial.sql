-- The same tables as SQLite's; what differs is how PostgreSQL spells it.
--
-- Times are RFC 3339 text in UTC with nine decimals: exact, readable, and in order as text (COLLATE "C").

CREATE TABLE task (
    user_id      TEXT COLLATE "C" NOT NULL,
    id           BIGINT NOT NULL CHECK (id > 0),
    description  TEXT COLLATE "C" NOT NULL,
    created_at   TEXT COLLATE "C" NOT NULL,
    updated_at   TEXT COLLATE "C" NOT NULL,
    completed_at TEXT COLLATE "C",
    PRIMARY KEY (user_id, id)
);

-- The highest id a user's tasks ever had: a deleted task's id is not given again.
CREATE TABLE task_counter (
    user_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    last_id BIGINT NOT NULL
);

-- Written with the change itself, so that the same key again changes nothing.
CREATE TABLE applied_change (
    user_id TEXT COLLATE "C" NOT NULL,
    key     TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    at      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE TABLE conversation (
    key         BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    user_id     TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    title       TEXT COLLATE "C" NOT NULL,
    created_at  TEXT COLLATE "C" NOT NULL,
    updated_at  TEXT COLLATE "C" NOT NULL,
    next_seq    BIGINT NOT NULL DEFAULT 1,
    -- What follows from inbox and events, kept up to date in the same transaction, so that looking for work is a look
    -- into an index.
    untaken     BIGINT NOT NULL DEFAULT 0,
    turn        TEXT COLLATE "C",
    parked_seq  BIGINT,
    waiting     TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    unsettled   BIGINT GENERATED ALWAYS AS
                (CASE WHEN untaken > 0 OR (turn IS NOT NULL AND parked_seq IS NULL) THEN 1 ELSE 0 END) STORED,
    -- Who runs it: a matter of liveness only.
    lease_by    TEXT COLLATE "C",
    lease_until TEXT COLLATE "C",
    UNIQUE (user_id, id)
);
CREATE INDEX conversation_recent ON conversation (user_id, updated_at);
CREATE INDEX conversation_unsettled ON conversation (updated_at) WHERE unsettled = 1;
CREATE INDEX conversation_parked ON conversation (user_id) WHERE parked_seq IS NOT NULL;

CREATE TABLE inbox (
    accepted     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    conversation BIGINT NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    id           TEXT COLLATE "C" NOT NULL,
    v            BIGINT NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    at           TEXT COLLATE "C" NOT NULL,
    taken_seq    BIGINT,
    UNIQUE (conversation, id)
);
CREATE INDEX inbox_untaken ON inbox (conversation, accepted) WHERE taken_seq IS NULL;

CREATE TABLE event (
    conversation BIGINT NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    seq          BIGINT NOT NULL,
    v            BIGINT NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL,
    turn         TEXT COLLATE "C",
    step         TEXT COLLATE "C",
    body         TEXT COLLATE "C" NOT NULL,
    at           TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, seq)
);
CREATE UNIQUE INDEX event_once ON event (conversation, step, kind) WHERE step IS NOT NULL;

CREATE TABLE decision (
    number          BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    conversation    BIGINT NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    conversation_id TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    started_at      TEXT COLLATE "C" NOT NULL,
    ended_at        TEXT COLLATE "C",
    message         TEXT COLLATE "C" NOT NULL,
    message_chars   BIGINT NOT NULL,
    intent          TEXT COLLATE "C",
    kind            TEXT COLLATE "C",
    outcome         TEXT COLLATE "C",
    content         TEXT COLLATE "C",
    model_provider  TEXT COLLATE "C" NOT NULL,
    model_name      TEXT COLLATE "C" NOT NULL,
    model_calls     BIGINT NOT NULL,
    iterations      BIGINT NOT NULL,
    input_tokens    BIGINT,
    output_tokens   BIGINT,
    cached_tokens   BIGINT,
    thinking_tokens BIGINT,
    cost_usd        DOUBLE PRECISION,
    cache_written_tokens BIGINT,
    notices         TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    model_ms        BIGINT NOT NULL,
    tool_ms         BIGINT NOT NULL,
    total_ms        BIGINT,
    error_code      TEXT COLLATE "C",
    raw_response    TEXT COLLATE "C",
    UNIQUE (user_id, id)
);
CREATE INDEX decision_recent ON decision (user_id, started_at);
CREATE INDEX decision_conversation ON decision (conversation);

CREATE TABLE tool_invocation (
    number       BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    -- Empty for a call a human made without a model.
    conversation BIGINT REFERENCES conversation (key) ON DELETE CASCADE,
    user_id      TEXT COLLATE "C" NOT NULL,
    decision     TEXT COLLATE "C" NOT NULL,
    id           TEXT COLLATE "C" NOT NULL,
    tool         TEXT COLLATE "C" NOT NULL,
    arguments    TEXT COLLATE "C" NOT NULL,
    success      BIGINT NOT NULL,
    data         TEXT COLLATE "C",
    error        TEXT COLLATE "C",
    ms           BIGINT NOT NULL,
    attempt      BIGINT NOT NULL,
    at           TEXT COLLATE "C" NOT NULL,
    UNIQUE (user_id, decision, id)
);
CREATE INDEX tool_invocation_conversation ON tool_invocation (conversation);

-- Who may ask over a network. A secret is kept as its SHA-256 only.
CREATE TABLE token (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    digest     TEXT COLLATE "C" NOT NULL UNIQUE,
    user_id    TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    revoked_at TEXT COLLATE "C"
);
