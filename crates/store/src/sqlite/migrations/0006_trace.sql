-- Lists go on where somebody stopped reading: by time, and by id where two are of one moment.
DROP INDEX conversation_recent;
CREATE INDEX conversation_recent ON conversation (user_id, updated_at, id);
DROP INDEX decision_recent;
CREATE INDEX decision_recent ON decision (user_id, started_at, id);
-- The HTTP request an input came with, and so the one that started a turn.
ALTER TABLE inbox ADD COLUMN request_id TEXT;
ALTER TABLE decision ADD COLUMN request_id TEXT;
