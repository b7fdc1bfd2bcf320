-- The revision of a user's facts, which each change of one of them raises: a change is refused if they have another one than it was
-- planned on. A user whose facts were never changed since this table exists has none of its rows.
CREATE TABLE adjutant_fact_revision (
    user_id  TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT;
-- The revision at which a fact was written, so that a process that knows the facts of an earlier one reads only what is new.
ALTER TABLE adjutant_fact ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE INDEX adjutant_fact_written ON adjutant_fact (user_id, revision);
