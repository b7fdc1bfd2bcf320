-- The whole schema of version 9, for a database that has none. 0009_agent.sql leads to the same from an older one.

-- 'ADJT': tells our files from those of other programs.
PRAGMA application_id = 1094994516;

-- Times are RFC 3339 text in UTC with nine decimals: exact, readable, and in order as text.

CREATE TABLE adjutant_task (
    user_id      TEXT NOT NULL,
    id           INTEGER NOT NULL CHECK (id > 0),
    description  TEXT NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    completed_at TEXT,
    PRIMARY KEY (user_id, id)
) STRICT, WITHOUT ROWID;

-- The highest id a user's tasks ever had: a deleted task's id is not given again.
CREATE TABLE adjutant_task_counter (
    user_id TEXT NOT NULL PRIMARY KEY,
    last_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Written with the change itself, so that the same key again changes nothing.
CREATE TABLE adjutant_applied_change (
    user_id TEXT NOT NULL,
    key     TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at      TEXT NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE adjutant_conversation (
    key         INTEGER PRIMARY KEY,
    agent       TEXT NOT NULL DEFAULT 'adjutant',
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
    -- When the first of the calls that wait for a human expires.
    wake_at     TEXT,
    unsettled   INTEGER GENERATED ALWAYS AS (untaken > 0 OR (turn IS NOT NULL AND parked_seq IS NULL)) VIRTUAL,
    -- Turns that were begun.
    turns       INTEGER NOT NULL DEFAULT 0,
    -- Who runs it: a matter of liveness only.
    lease_by    TEXT,
    lease_until TEXT,
    -- The worker's epoch at the claim; where a branch begins in the conversation it goes on from; reserved: as JSON, the
    -- agent, conversation, turn and call that delegated to this conversation.
    epoch              INTEGER NOT NULL DEFAULT 0,
    branched_from_key  INTEGER REFERENCES adjutant_conversation (key),
    branched_from_seq  INTEGER,
    parent             TEXT,
    UNIQUE (agent, user_id, id)
) STRICT;
CREATE INDEX adjutant_conversation_recent ON adjutant_conversation (agent, user_id, updated_at, id);
CREATE INDEX adjutant_conversation_unsettled ON adjutant_conversation (agent, updated_at) WHERE unsettled = 1;
CREATE INDEX adjutant_conversation_parked ON adjutant_conversation (agent, user_id) WHERE parked_seq IS NOT NULL;
CREATE INDEX adjutant_conversation_wake ON adjutant_conversation (agent, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX adjutant_conversation_branches ON adjutant_conversation (branched_from_key)
    WHERE branched_from_key IS NOT NULL;

CREATE TABLE adjutant_inbox (
    accepted     INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    id           TEXT NOT NULL,
    v            INTEGER NOT NULL,
    body         TEXT NOT NULL,
    at           TEXT NOT NULL,
    taken_seq    INTEGER,
    -- The HTTP request the input came with.
    request_id   TEXT,
    -- A hash of the request the input was made from, where its client named it: the same name for another request is
    -- refused.
    fingerprint  TEXT,
    -- The place of the conversation's last event when the input was accepted: what its sender can have seen.
    after_seq    INTEGER,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX adjutant_inbox_untaken ON adjutant_inbox (conversation, accepted) WHERE taken_seq IS NULL;

CREATE TABLE adjutant_event (
    conversation INTEGER NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    v            INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    turn         TEXT,
    step         TEXT,
    body         TEXT NOT NULL,
    at           TEXT NOT NULL,
    -- The hash, where `body` is empty because it is in `adjutant_blob`.
    blob         TEXT,
    PRIMARY KEY (conversation, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX adjutant_event_once ON adjutant_event (conversation, step, kind) WHERE step IS NOT NULL;

-- Bodies that are too large for a row of `adjutant_event`, by the SHA-256 of their text. They belong to one conversation, so
-- that they go with it, and nothing of one user's is shared with another's.
CREATE TABLE adjutant_blob (
    conversation INTEGER NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    hash         TEXT NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (conversation, hash)
) STRICT;

CREATE TABLE adjutant_decision (
    number               INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation         INTEGER NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    conversation_id      TEXT NOT NULL,
    user_id              TEXT NOT NULL,
    id                   TEXT NOT NULL,
    agent                TEXT NOT NULL DEFAULT 'adjutant',
    -- The agent's own, if its developer gives one.
    version              TEXT,
    request_id           TEXT,
    started_at           TEXT NOT NULL,
    ended_at             TEXT,
    message              TEXT NOT NULL,
    message_chars        INTEGER NOT NULL,
    intent               TEXT,
    kind                 TEXT,
    outcome              TEXT,
    content              TEXT,
    model_provider       TEXT NOT NULL,
    model_name           TEXT NOT NULL,
    model_calls          INTEGER NOT NULL,
    iterations           INTEGER NOT NULL,
    input_tokens         INTEGER,
    output_tokens        INTEGER,
    cached_tokens        INTEGER,
    cache_written_tokens INTEGER,
    thinking_tokens      INTEGER,
    -- Empty where it is not known.
    cost_usd             REAL,
    -- What the person was told beside the answer, as JSON: settings left out, allowances, cuts.
    notices              TEXT NOT NULL DEFAULT '[]',
    model_ms             INTEGER NOT NULL,
    tool_ms              INTEGER NOT NULL,
    total_ms             INTEGER,
    error_code           TEXT,
    raw_response         TEXT,
    UNIQUE (user_id, id)
) STRICT;
CREATE INDEX adjutant_decision_recent ON adjutant_decision (user_id, started_at, id);
CREATE INDEX adjutant_decision_conversation ON adjutant_decision (conversation);

CREATE TABLE adjutant_tool_invocation (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Empty for a call a human made without a model.
    conversation INTEGER REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
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
CREATE INDEX adjutant_tool_invocation_conversation ON adjutant_tool_invocation (conversation);

-- Who may ask over a network. A secret is kept as its SHA-256 only.
CREATE TABLE adjutant_token (
    id         TEXT NOT NULL PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    user_id    TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;

-- What users spend, as far as it is added up. Days are those of UTC, as YYYY-MM-DD. The row of the user '' is what all of them
-- spend together.
CREATE TABLE adjutant_budget (
    user_id     TEXT NOT NULL,
    day         TEXT NOT NULL,
    tokens      INTEGER NOT NULL DEFAULT 0,
    model_calls INTEGER NOT NULL DEFAULT 0,
    tool_calls  INTEGER NOT NULL DEFAULT 0,
    ms          INTEGER NOT NULL DEFAULT 0,
    -- Billionths of a dollar.
    cost        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, user_id)
) STRICT, WITHOUT ROWID;

-- What processes have taken of a day to spend, each of what everybody may ('') and of what its users may: since a block was
-- opened, and what of that is booked and added up. After `until`, or when its worker is gone, only that counts.
CREATE TABLE adjutant_budget_block (
    id          TEXT NOT NULL PRIMARY KEY,
    day         TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    worker      TEXT NOT NULL,
    epoch       INTEGER NOT NULL,
    until       TEXT NOT NULL,
    tokens      INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    tool_calls  INTEGER NOT NULL,
    ms          INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    booked_tokens      INTEGER NOT NULL DEFAULT 0,
    booked_model_calls INTEGER NOT NULL DEFAULT 0,
    booked_tool_calls  INTEGER NOT NULL DEFAULT 0,
    booked_ms          INTEGER NOT NULL DEFAULT 0,
    booked_cost        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX adjutant_budget_block_day ON adjutant_budget_block (day, user_id);

-- What was used, as it was booked with the events it came of, until it is added up in adjutant_budget. `closes_*`: nothing is
-- taken from the block any more. `folding`: it is being added up.
CREATE TABLE adjutant_budget_booking (
    id              TEXT NOT NULL PRIMARY KEY,
    day             TEXT NOT NULL,
    user_id         TEXT NOT NULL,
    everyone_block  TEXT,
    own_block       TEXT,
    closes_everyone INTEGER NOT NULL,
    closes_own      INTEGER NOT NULL,
    tokens          INTEGER NOT NULL,
    model_calls     INTEGER NOT NULL,
    tool_calls      INTEGER NOT NULL,
    ms              INTEGER NOT NULL,
    cost            INTEGER NOT NULL,
    folding         INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX adjutant_budget_booking_day ON adjutant_budget_booking (day, user_id);

-- What changed in the memories of vaults. `scope` is the SHA-256 of user and vault, `before_hash` and `after_hash` those of a
-- fact's words: paths and words may be longer than an index takes.
CREATE TABLE adjutant_memory_change (
    seq         INTEGER PRIMARY KEY,
    scope       TEXT NOT NULL,
    user_id     TEXT NOT NULL,
    vault       TEXT NOT NULL,
    id          TEXT NOT NULL,
    at          TEXT NOT NULL,
    call_key    TEXT,
    state       TEXT NOT NULL,
    before_hash TEXT,
    after_hash  TEXT,
    v           INTEGER NOT NULL,
    body        TEXT NOT NULL,
    UNIQUE (scope, id)
) STRICT;
CREATE INDEX adjutant_memory_change_key ON adjutant_memory_change (scope, call_key) WHERE call_key IS NOT NULL;
CREATE INDEX adjutant_memory_change_before ON adjutant_memory_change (scope, before_hash) WHERE before_hash IS NOT NULL;
CREATE INDEX adjutant_memory_change_after ON adjutant_memory_change (scope, after_hash) WHERE after_hash IS NOT NULL;
CREATE INDEX adjutant_memory_change_order ON adjutant_memory_change (scope, seq);

-- What a conversation's events up to `seq` come to, without the messages: those of the next request begin at
-- `messages_from`. A cache: what cannot be read is left out.
CREATE TABLE adjutant_snapshot (
    conversation  INTEGER PRIMARY KEY REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    seq           INTEGER NOT NULL,
    messages_from INTEGER NOT NULL,
    v             INTEGER NOT NULL,
    digest        TEXT NOT NULL,
    body          TEXT NOT NULL
) STRICT;

-- The processes that run conversations for longer than a moment, and until when the claims hold that each made in an epoch.
CREATE TABLE adjutant_worker (
    id         TEXT NOT NULL,
    epoch      INTEGER NOT NULL,
    seen_until TEXT NOT NULL,
    PRIMARY KEY (id, epoch)
) STRICT, WITHOUT ROWID;
