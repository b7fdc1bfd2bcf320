-- The whole schema of version 7, for a database that has none; what came later is applied after it. 0007_agent.sql leads to the
-- same from an older one.

-- Times are RFC 3339 text in UTC with nine decimals: exact, readable, and in order as text (COLLATE "C").

CREATE TABLE adjutant_task (
    user_id      TEXT COLLATE "C" NOT NULL,
    id           BIGINT NOT NULL CHECK (id > 0),
    description  TEXT COLLATE "C" NOT NULL,
    created_at   TEXT COLLATE "C" NOT NULL,
    updated_at   TEXT COLLATE "C" NOT NULL,
    completed_at TEXT COLLATE "C",
    PRIMARY KEY (user_id, id)
);

-- The highest id a user's tasks ever had: a deleted task's id is not given again.
CREATE TABLE adjutant_task_counter (
    user_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    last_id BIGINT NOT NULL
);

-- Written with the change itself, so that the same key again changes nothing.
CREATE TABLE adjutant_applied_change (
    user_id TEXT COLLATE "C" NOT NULL,
    key     TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    at      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE TABLE adjutant_conversation (
    key         BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    agent       TEXT COLLATE "C" NOT NULL DEFAULT 'adjutant',
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
    -- When the first of the calls that wait for a human expires.
    wake_at     TEXT COLLATE "C",
    unsettled   BIGINT GENERATED ALWAYS AS
                (CASE WHEN untaken > 0 OR (turn IS NOT NULL AND parked_seq IS NULL) THEN 1 ELSE 0 END) STORED,
    -- Turns that were begun.
    turns       BIGINT NOT NULL DEFAULT 0,
    -- Who runs it: a matter of liveness only.
    lease_by    TEXT COLLATE "C",
    lease_until TEXT COLLATE "C",
    -- The worker's epoch at the claim; where a branch begins in the conversation it goes on from; reserved: as JSON, the
    -- agent, conversation, turn and call that delegated to this conversation.
    epoch              BIGINT NOT NULL DEFAULT 0,
    branched_from_key  BIGINT REFERENCES adjutant_conversation (key),
    branched_from_seq  BIGINT,
    parent             TEXT COLLATE "C",
    UNIQUE (agent, user_id, id)
);
CREATE INDEX adjutant_conversation_recent ON adjutant_conversation (agent, user_id, updated_at, id);
CREATE INDEX adjutant_conversation_unsettled ON adjutant_conversation (agent, updated_at) WHERE unsettled = 1;
CREATE INDEX adjutant_conversation_parked ON adjutant_conversation (agent, user_id) WHERE parked_seq IS NOT NULL;
CREATE INDEX adjutant_conversation_wake ON adjutant_conversation (agent, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX adjutant_conversation_branches ON adjutant_conversation (branched_from_key)
    WHERE branched_from_key IS NOT NULL;

CREATE TABLE adjutant_inbox (
    accepted     BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    conversation BIGINT NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    id           TEXT COLLATE "C" NOT NULL,
    v            BIGINT NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    at           TEXT COLLATE "C" NOT NULL,
    taken_seq    BIGINT,
    -- The HTTP request the input came with.
    request_id   TEXT COLLATE "C",
    -- A hash of the request the input was made from, where its client named it: the same name for another request is
    -- refused.
    fingerprint  TEXT,
    -- The place of the conversation's last event when the input was accepted: what its sender can have seen.
    after_seq    BIGINT,
    UNIQUE (conversation, id)
);
CREATE INDEX adjutant_inbox_untaken ON adjutant_inbox (conversation, accepted) WHERE taken_seq IS NULL;

CREATE TABLE adjutant_event (
    conversation BIGINT NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    seq          BIGINT NOT NULL,
    v            BIGINT NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL,
    turn         TEXT COLLATE "C",
    step         TEXT COLLATE "C",
    body         TEXT COLLATE "C" NOT NULL,
    at           TEXT COLLATE "C" NOT NULL,
    -- The hash, where `body` is empty because it is in `adjutant_blob`.
    blob         TEXT COLLATE "C",
    PRIMARY KEY (conversation, seq)
);
CREATE UNIQUE INDEX adjutant_event_once ON adjutant_event (conversation, step, kind) WHERE step IS NOT NULL;

-- Bodies that are too large for a row of `adjutant_event`, by the SHA-256 of their text. They belong to one conversation, so
-- that they go with it, and nothing of one user's is shared with another's.
CREATE TABLE adjutant_blob (
    conversation BIGINT NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    hash         TEXT COLLATE "C" NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, hash)
);

CREATE TABLE adjutant_decision (
    number               BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    conversation         BIGINT NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    conversation_id      TEXT COLLATE "C" NOT NULL,
    user_id              TEXT COLLATE "C" NOT NULL,
    id                   TEXT COLLATE "C" NOT NULL,
    agent                TEXT COLLATE "C" NOT NULL DEFAULT 'adjutant',
    -- The agent's own, if its developer gives one.
    version              TEXT COLLATE "C",
    request_id           TEXT COLLATE "C",
    started_at           TEXT COLLATE "C" NOT NULL,
    ended_at             TEXT COLLATE "C",
    message              TEXT COLLATE "C" NOT NULL,
    message_chars        BIGINT NOT NULL,
    intent               TEXT COLLATE "C",
    kind                 TEXT COLLATE "C",
    outcome              TEXT COLLATE "C",
    content              TEXT COLLATE "C",
    model_provider       TEXT COLLATE "C" NOT NULL,
    model_name           TEXT COLLATE "C" NOT NULL,
    model_calls          BIGINT NOT NULL,
    iterations           BIGINT NOT NULL,
    input_tokens         BIGINT,
    output_tokens        BIGINT,
    cached_tokens        BIGINT,
    cache_written_tokens BIGINT,
    thinking_tokens      BIGINT,
    -- Empty where it is not known.
    cost_usd             DOUBLE PRECISION,
    -- What the person was told beside the answer, as JSON: settings left out, allowances, cuts.
    notices              TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    model_ms             BIGINT NOT NULL,
    tool_ms              BIGINT NOT NULL,
    total_ms             BIGINT,
    error_code           TEXT COLLATE "C",
    raw_response         TEXT COLLATE "C",
    UNIQUE (user_id, id)
);
CREATE INDEX adjutant_decision_recent ON adjutant_decision (user_id, started_at, id);
CREATE INDEX adjutant_decision_conversation ON adjutant_decision (conversation);

CREATE TABLE adjutant_tool_invocation (
    number       BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    -- Empty for a call a human made without a model.
    conversation BIGINT REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
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
CREATE INDEX adjutant_tool_invocation_conversation ON adjutant_tool_invocation (conversation);

-- Who may ask over a network. A secret is kept as its SHA-256 only.
CREATE TABLE adjutant_token (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    digest     TEXT COLLATE "C" NOT NULL UNIQUE,
    user_id    TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    created_at TEXT COLLATE "C" NOT NULL,
    revoked_at TEXT COLLATE "C"
);

-- What users spend, as far as it is added up. Days are those of UTC, as YYYY-MM-DD. The row of the user '' is what all of them
-- spend together.
CREATE TABLE adjutant_budget (
    user_id     TEXT COLLATE "C" NOT NULL,
    day         TEXT COLLATE "C" NOT NULL,
    tokens      BIGINT NOT NULL DEFAULT 0,
    model_calls BIGINT NOT NULL DEFAULT 0,
    tool_calls  BIGINT NOT NULL DEFAULT 0,
    ms          BIGINT NOT NULL DEFAULT 0,
    -- Billionths of a dollar.
    cost        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (day, user_id)
);

-- What processes have taken of a day to spend, each of what everybody may ('') and of what its users may: since a block was
-- opened, and what of that is booked and added up. After `until`, or when its worker is gone, only that counts.
CREATE TABLE adjutant_budget_block (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    day         TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,
    worker      TEXT COLLATE "C" NOT NULL,
    epoch       BIGINT NOT NULL,
    until       TEXT COLLATE "C" NOT NULL,
    tokens      BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    tool_calls  BIGINT NOT NULL,
    ms          BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    booked_tokens      BIGINT NOT NULL DEFAULT 0,
    booked_model_calls BIGINT NOT NULL DEFAULT 0,
    booked_tool_calls  BIGINT NOT NULL DEFAULT 0,
    booked_ms          BIGINT NOT NULL DEFAULT 0,
    booked_cost        BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX adjutant_budget_block_day ON adjutant_budget_block (day, user_id);

-- What was used, as it was booked with the events it came of, until it is added up in adjutant_budget. `closes_*`: nothing is
-- taken from the block any more. `folding`: it is being added up.
CREATE TABLE adjutant_budget_booking (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    day             TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    everyone_block  TEXT COLLATE "C",
    own_block       TEXT COLLATE "C",
    closes_everyone BIGINT NOT NULL,
    closes_own      BIGINT NOT NULL,
    tokens          BIGINT NOT NULL,
    model_calls     BIGINT NOT NULL,
    tool_calls      BIGINT NOT NULL,
    ms              BIGINT NOT NULL,
    cost            BIGINT NOT NULL,
    folding         BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX adjutant_budget_booking_day ON adjutant_budget_booking (day, user_id);

-- What changed in the memories of vaults. `scope` is the SHA-256 of user and vault, `before_hash` and `after_hash` those of a
-- fact's words: paths and words may be longer than an index takes.
CREATE TABLE adjutant_memory_change (
    seq         BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    scope       TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,
    vault       TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    at          TEXT COLLATE "C" NOT NULL,
    call_key    TEXT COLLATE "C",
    state       TEXT COLLATE "C" NOT NULL,
    before_hash TEXT COLLATE "C",
    after_hash  TEXT COLLATE "C",
    v           BIGINT NOT NULL,
    body        TEXT NOT NULL,
    UNIQUE (scope, id)
);
CREATE INDEX adjutant_memory_change_key ON adjutant_memory_change (scope, call_key) WHERE call_key IS NOT NULL;
CREATE INDEX adjutant_memory_change_before ON adjutant_memory_change (scope, before_hash) WHERE before_hash IS NOT NULL;
CREATE INDEX adjutant_memory_change_after ON adjutant_memory_change (scope, after_hash) WHERE after_hash IS NOT NULL;
CREATE INDEX adjutant_memory_change_order ON adjutant_memory_change (scope, seq);

-- What a conversation's events up to `seq` come to, without the messages: those of the next request begin at
-- `messages_from`. A cache: what cannot be read is left out.
CREATE TABLE adjutant_snapshot (
    conversation  BIGINT NOT NULL PRIMARY KEY REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    seq           BIGINT NOT NULL,
    messages_from BIGINT NOT NULL,
    v             BIGINT NOT NULL,
    digest        TEXT COLLATE "C" NOT NULL,
    body          TEXT COLLATE "C" NOT NULL
);

-- The processes that run conversations for longer than a moment, and until when the claims hold that each made in an epoch.
CREATE TABLE adjutant_worker (
    id         TEXT COLLATE "C" NOT NULL,
    epoch      BIGINT NOT NULL,
    seen_until TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (id, epoch)
);
