-- What users spend. Days are those of UTC, as YYYY-MM-DD. The row of the user '' counts nothing: it is what those wait at
-- who are bounded by what everybody spends.
CREATE TABLE budget (
    user_id     TEXT NOT NULL,
    day         TEXT NOT NULL,
    tokens      INTEGER NOT NULL DEFAULT 0,
    model_calls INTEGER NOT NULL DEFAULT 0,
    tool_calls  INTEGER NOT NULL DEFAULT 0,
    ms          INTEGER NOT NULL DEFAULT 0,
    -- Billionths of a dollar.
    cost        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, user_id)
) STRICT, WITHOUT ROWID;

-- What running steps may spend at most. After `until`, or when its worker is gone, a row counts no more.
CREATE TABLE reservation (
    user_id     TEXT NOT NULL,
    day         TEXT NOT NULL,
    step        TEXT NOT NULL,
    tokens      INTEGER NOT NULL,
    model_calls INTEGER NOT NULL,
    tool_calls  INTEGER NOT NULL,
    ms          INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    worker      TEXT NOT NULL,
    until       TEXT NOT NULL,
    PRIMARY KEY (day, user_id, step)
) STRICT, WITHOUT ROWID;
