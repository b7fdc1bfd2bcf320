-- The facts about users that have no vault. `text_hash`: the SHA-256 of the words, which may be longer than an index takes.
-- `conversation`, `turn`, `call`: where it got its words; none if the person wrote them.
CREATE TABLE adjutant_fact (
    key          BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    user_id      TEXT COLLATE "C" NOT NULL,
    text_hash    TEXT COLLATE "C" NOT NULL,
    text         TEXT COLLATE "C" NOT NULL,
    important    BIGINT NOT NULL,
    created_at   TEXT COLLATE "C" NOT NULL,
    updated_at   TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C",
    turn         TEXT COLLATE "C",
    call         TEXT COLLATE "C",
    UNIQUE (user_id, text_hash)
);
