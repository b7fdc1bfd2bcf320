-- What users spend. Days are those of UTC, as YYYY-MM-DD. The row of the user '' counts nothing: it is what those wait at
-- who are bounded by what everybody spends.
CREATE TABLE budget (
    user_id     TEXT COLLATE "C" NOT NULL,
    day         TEXT COLLATE "C" NOT NULL,
    tokens      BIGINT NOT NULL DEFAULT 0,
    model_calls BIGINT NOT NULL DEFAULT 0,
    tool_calls  BIGINT NOT NULL DEFAULT 0,
    ms          BIGINT NOT NULL DEFAULT 0,
    -- Billionths of a dollar.
    cost        BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (day, user_id)
);

-- What running steps may spend at most. After `until`, or when its worker is gone, a row counts no more.
CREATE TABLE reservation (
    user_id     TEXT COLLATE "C" NOT NULL,
    day         TEXT COLLATE "C" NOT NULL,
    step        TEXT COLLATE "C" NOT NULL,
    tokens      BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    tool_calls  BIGINT NOT NULL,
    ms          BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    worker      TEXT COLLATE "C" NOT NULL,
    until       TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (day, user_id, step)
);
