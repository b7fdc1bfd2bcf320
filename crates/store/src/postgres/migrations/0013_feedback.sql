-- What a person thinks of the answer of a turn. It follows from no event.

-- up or down.
ALTER TABLE adjutant_decision ADD COLUMN feedback TEXT COLLATE "C";
-- The reason, in their words.
ALTER TABLE adjutant_decision ADD COLUMN feedback_comment TEXT COLLATE "C";
ALTER TABLE adjutant_decision ADD COLUMN feedback_at TEXT COLLATE "C";
CREATE INDEX adjutant_decision_feedback ON adjutant_decision (user_id, id) WHERE feedback IS NOT NULL;
CREATE INDEX adjutant_decision_rated ON adjutant_decision (started_at, id) WHERE feedback IS NOT NULL;
