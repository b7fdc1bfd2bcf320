-- For whoever looks over all users: the newest turns, those of a request, those that failed, what waits the longest; and who has a memory.
CREATE INDEX adjutant_decision_newest ON adjutant_decision (started_at, id);
CREATE INDEX adjutant_decision_request ON adjutant_decision (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX adjutant_decision_failed ON adjutant_decision (started_at, id) WHERE error_code IS NOT NULL;
CREATE INDEX adjutant_conversation_waiting ON adjutant_conversation (updated_at, key) WHERE parked_seq IS NOT NULL;
CREATE INDEX adjutant_memory_change_user ON adjutant_memory_change (user_id);
