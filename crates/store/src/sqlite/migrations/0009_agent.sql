-- A conversation belongs to an agent. Those of before this was written down are the product's own.
--
-- The old uniqueness is part of the table, so the table is made anew (sqlite.org/lang_altertable.html, 7).
CREATE TABLE new_conversation (
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
    -- Who runs it: a matter of liveness only.
    lease_by    TEXT,
    lease_until TEXT,
    UNIQUE (agent, user_id, id)
) STRICT;
INSERT INTO new_conversation (key, user_id, id, title, created_at, updated_at, next_seq, untaken, turn, parked_seq, waiting,
    wake_at, lease_by, lease_until)
SELECT key, user_id, id, title, created_at, updated_at, next_seq, untaken, turn, parked_seq, waiting, wake_at, lease_by,
    lease_until
FROM conversation;
DROP TABLE conversation;
ALTER TABLE new_conversation RENAME TO conversation;
CREATE INDEX conversation_recent ON conversation (agent, user_id, updated_at, id);
CREATE INDEX conversation_unsettled ON conversation (agent, updated_at) WHERE unsettled = 1;
CREATE INDEX conversation_parked ON conversation (agent, user_id) WHERE parked_seq IS NOT NULL;
CREATE INDEX conversation_wake ON conversation (agent, wake_at) WHERE wake_at IS NOT NULL;

ALTER TABLE decision ADD COLUMN agent TEXT NOT NULL DEFAULT 'adjutant';
-- The agent's own, if its developer gives one.
ALTER TABLE decision ADD COLUMN version TEXT;
