-- What changed in the memories of vaults. `scope` is the SHA-256 of user and vault, `before_hash` and `after_hash` those of a
-- fact's words: paths and words may be longer than an index takes.
CREATE TABLE memory_change (
    seq         BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    scope       TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,
    vault       TEXT COLLATE "C" NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    at          TEXT COLLATE "C" NOT NULL,
    call_key    TEXT COLLATE "C",
    state       TEXT COLLATE "C" NOT NULL,
    before_hash TEXT COLLATE "C",
    after_hash  TEXT COLLATE "C",
    v           BIGINT NOT NULL,
    body        TEXT NOT NULL,
    UNIQUE (scope, id)
);
CREATE INDEX memory_change_key ON memory_change (scope, call_key) WHERE call_key IS NOT NULL;
CREATE INDEX memory_change_before ON memory_change (scope, before_hash) WHERE before_hash IS NOT NULL;
CREATE INDEX memory_change_after ON memory_change (scope, after_hash) WHERE after_hash IS NOT NULL;
CREATE INDEX memory_change_order ON memory_change (scope, seq);
