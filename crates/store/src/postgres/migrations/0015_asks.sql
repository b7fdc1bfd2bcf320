-- Whether a conversation waits for a person, and not for results of programs alone: in `waiting`, what a person is asked ends with the time
-- from which on the answer is too late, and was a bare name in the first version.
ALTER TABLE adjutant_conversation ADD COLUMN asks BIGINT GENERATED ALWAYS AS
    (CASE WHEN parked_seq IS NOT NULL AND (strpos(waiting, 'Z"]') > 0 OR substr(waiting, 1, 2) <> '[[') THEN 1 ELSE 0 END) STORED;
DROP INDEX adjutant_conversation_waiting;
CREATE INDEX adjutant_conversation_asking ON adjutant_conversation (updated_at, key) WHERE asks = 1;
