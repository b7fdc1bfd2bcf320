-- A conversation belongs to an agent. Those of before this was written down are the product's own.
ALTER TABLE conversation ADD COLUMN agent TEXT COLLATE "C" NOT NULL DEFAULT 'adjutant';
ALTER TABLE conversation DROP CONSTRAINT conversation_user_id_id_key;
ALTER TABLE conversation ADD UNIQUE (agent, user_id, id);
DROP INDEX conversation_recent;
CREATE INDEX conversation_recent ON conversation (agent, user_id, updated_at, id);
DROP INDEX conversation_unsettled;
CREATE INDEX conversation_unsettled ON conversation (agent, updated_at) WHERE unsettled = 1;
DROP INDEX conversation_parked;
CREATE INDEX conversation_parked ON conversation (agent, user_id) WHERE parked_seq IS NOT NULL;
DROP INDEX conversation_wake;
CREATE INDEX conversation_wake ON conversation (agent, wake_at) WHERE wake_at IS NOT NULL;

ALTER TABLE decision ADD COLUMN agent TEXT COLLATE "C" NOT NULL DEFAULT 'adjutant';
-- The agent's own, if its developer gives one.
ALTER TABLE decision ADD COLUMN version TEXT COLLATE "C";
