-- Our tables, with their indices, constraints and sequences, get a prefix, so that a program that has others beside them can
-- name its own as it likes. Foreign keys follow.
DO $$
DECLARE
    name TEXT;
    part RECORD;
BEGIN
    FOREACH name IN ARRAY ARRAY['task', 'task_counter', 'applied_change', 'conversation', 'inbox', 'event', 'decision',
        'tool_invocation', 'token', 'blob', 'budget', 'reservation', 'memory_change']
    LOOP
        FOR part IN
            SELECT oid, oid::regclass AS place, relname, relkind FROM pg_class
            WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid = name::regclass)
               OR relkind = 'S' AND oid IN (
                   SELECT objid FROM pg_depend WHERE refobjid = name::regclass AND deptype = 'i'
                   AND classid = 'pg_class'::regclass)
        LOOP
            EXECUTE format('ALTER %s %s RENAME TO %I',
                CASE part.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'INDEX' END, part.place, 'adjutant_' || part.relname);
        END LOOP;
        FOR part IN SELECT conname FROM pg_constraint WHERE conrelid = name::regclass AND conindid = 0 OR
            conrelid = name::regclass AND contype = 'f'
        LOOP
            EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', name::regclass, part.conname,
                'adjutant_' || part.conname);
        END LOOP;
        EXECUTE format('ALTER TABLE %s RENAME TO %I', name::regclass, 'adjutant_' || name);
    END LOOP;
END
$$;

-- A conversation belongs to an agent. Those from before names were recorded are the product's own.
ALTER TABLE adjutant_conversation ADD COLUMN agent TEXT COLLATE "C" NOT NULL DEFAULT 'adjutant';
ALTER TABLE adjutant_conversation DROP CONSTRAINT adjutant_conversation_user_id_id_key;
ALTER TABLE adjutant_conversation ADD UNIQUE (agent, user_id, id);
DROP INDEX adjutant_conversation_recent;
CREATE INDEX adjutant_conversation_recent ON adjutant_conversation (agent, user_id, updated_at, id);
DROP INDEX adjutant_conversation_unsettled;
CREATE INDEX adjutant_conversation_unsettled ON adjutant_conversation (agent, updated_at) WHERE unsettled = 1;
DROP INDEX adjutant_conversation_parked;
CREATE INDEX adjutant_conversation_parked ON adjutant_conversation (agent, user_id) WHERE parked_seq IS NOT NULL;
DROP INDEX adjutant_conversation_wake;
CREATE INDEX adjutant_conversation_wake ON adjutant_conversation (agent, wake_at) WHERE wake_at IS NOT NULL;

-- Turns that were begun.
ALTER TABLE adjutant_conversation ADD COLUMN turns BIGINT NOT NULL DEFAULT 0;
UPDATE adjutant_conversation SET turns = begun.turns
FROM (SELECT conversation, count(*) AS turns FROM adjutant_event WHERE kind = 'turn_started' GROUP BY conversation) AS begun
WHERE begun.conversation = key;

-- The worker's epoch at the claim; where a branch begins in the conversation it goes on from; reserved: as JSON, the agent,
-- conversation, turn and call that delegated to this conversation.
ALTER TABLE adjutant_conversation ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE adjutant_conversation ADD COLUMN branched_from_key BIGINT REFERENCES adjutant_conversation (key);
ALTER TABLE adjutant_conversation ADD COLUMN branched_from_seq BIGINT;
ALTER TABLE adjutant_conversation ADD COLUMN parent TEXT COLLATE "C";
CREATE INDEX adjutant_conversation_branches ON adjutant_conversation (branched_from_key)
    WHERE branched_from_key IS NOT NULL;

ALTER TABLE adjutant_decision ADD COLUMN agent TEXT COLLATE "C" NOT NULL DEFAULT 'adjutant';
-- The agent's own, if its developer gives one.
ALTER TABLE adjutant_decision ADD COLUMN version TEXT COLLATE "C";

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

-- What everybody spends together has a row of its own, so that nobody adds up all users' rows.
DELETE FROM adjutant_budget WHERE user_id = '';
INSERT INTO adjutant_budget (user_id, day, tokens, model_calls, tool_calls, ms, cost)
SELECT '', day, sum(tokens), sum(model_calls), sum(tool_calls), sum(ms), sum(cost) FROM adjutant_budget GROUP BY day;

-- Steps that a process of before has begun are not known any more: what they used is booked by nobody.
DROP TABLE adjutant_reservation;

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
