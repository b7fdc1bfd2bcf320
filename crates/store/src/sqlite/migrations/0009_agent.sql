-- Our tables and indices get a prefix, so that a program that has others beside them can name its own as it likes. Their
-- foreign keys follow.
ALTER TABLE task RENAME TO adjutant_task;
ALTER TABLE task_counter RENAME TO adjutant_task_counter;
ALTER TABLE applied_change RENAME TO adjutant_applied_change;
ALTER TABLE conversation RENAME TO adjutant_conversation;
ALTER TABLE inbox RENAME TO adjutant_inbox;
ALTER TABLE event RENAME TO adjutant_event;
ALTER TABLE decision RENAME TO adjutant_decision;
ALTER TABLE tool_invocation RENAME TO adjutant_tool_invocation;
ALTER TABLE token RENAME TO adjutant_token;
ALTER TABLE blob RENAME TO adjutant_blob;
ALTER TABLE budget RENAME TO adjutant_budget;
ALTER TABLE reservation RENAME TO adjutant_reservation;
ALTER TABLE memory_change RENAME TO adjutant_memory_change;

DROP INDEX inbox_untaken;
CREATE INDEX adjutant_inbox_untaken ON adjutant_inbox (conversation, accepted) WHERE taken_seq IS NULL;
DROP INDEX event_once;
CREATE UNIQUE INDEX adjutant_event_once ON adjutant_event (conversation, step, kind) WHERE step IS NOT NULL;
DROP INDEX decision_recent;
CREATE INDEX adjutant_decision_recent ON adjutant_decision (user_id, started_at, id);
DROP INDEX decision_conversation;
CREATE INDEX adjutant_decision_conversation ON adjutant_decision (conversation);
DROP INDEX tool_invocation_conversation;
CREATE INDEX adjutant_tool_invocation_conversation ON adjutant_tool_invocation (conversation);
DROP INDEX memory_change_key;
CREATE INDEX adjutant_memory_change_key ON adjutant_memory_change (scope, call_key) WHERE call_key IS NOT NULL;
DROP INDEX memory_change_before;
CREATE INDEX adjutant_memory_change_before ON adjutant_memory_change (scope, before_hash) WHERE before_hash IS NOT NULL;
DROP INDEX memory_change_after;
CREATE INDEX adjutant_memory_change_after ON adjutant_memory_change (scope, after_hash) WHERE after_hash IS NOT NULL;
DROP INDEX memory_change_order;
CREATE INDEX adjutant_memory_change_order ON adjutant_memory_change (scope, seq);

-- A conversation belongs to an agent. Those from before names were recorded are the product's own.
--
-- The old uniqueness is part of the table, so the table is made anew (sqlite.org/lang_altertable.html, 7).
CREATE TABLE adjutant_new_conversation (
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
INSERT INTO adjutant_new_conversation (key, user_id, id, title, created_at, updated_at, next_seq, untaken, turn, parked_seq,
    waiting, wake_at, turns, lease_by, lease_until)
SELECT key, user_id, id, title, created_at, updated_at, next_seq, untaken, turn, parked_seq, waiting, wake_at,
    (SELECT count(*) FROM adjutant_event WHERE conversation = key AND kind = 'turn_started'), lease_by, lease_until
FROM adjutant_conversation;
DROP TABLE adjutant_conversation;
ALTER TABLE adjutant_new_conversation RENAME TO adjutant_conversation;
CREATE INDEX adjutant_conversation_recent ON adjutant_conversation (agent, user_id, updated_at, id);
CREATE INDEX adjutant_conversation_unsettled ON adjutant_conversation (agent, updated_at) WHERE unsettled = 1;
CREATE INDEX adjutant_conversation_parked ON adjutant_conversation (agent, user_id) WHERE parked_seq IS NOT NULL;
CREATE INDEX adjutant_conversation_wake ON adjutant_conversation (agent, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX adjutant_conversation_branches ON adjutant_conversation (branched_from_key)
    WHERE branched_from_key IS NOT NULL;

ALTER TABLE adjutant_decision ADD COLUMN agent TEXT NOT NULL DEFAULT 'adjutant';
-- The agent's own, if its developer gives one.
ALTER TABLE adjutant_decision ADD COLUMN version TEXT;

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

-- What everybody spends together has a row of its own, so that nobody adds up all users' rows.
DELETE FROM adjutant_budget WHERE user_id = '';
INSERT INTO adjutant_budget (user_id, day, tokens, model_calls, tool_calls, ms, cost)
SELECT '', day, sum(tokens), sum(model_calls), sum(tool_calls), sum(ms), sum(cost) FROM adjutant_budget GROUP BY day;

-- Steps that a process of before has begun are not known any more: what they used is booked by nobody.
DROP TABLE adjutant_reservation;

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
