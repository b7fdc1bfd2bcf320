-- The facts about users that have no vault. `text_hash`: the SHA-256 of the words, which may be longer than an index takes.
-- `conversation`, `turn`, `call`: where it got its words; none if the person wrote them.
CREATE TABLE adjutant_fact (
    key          INTEGER PRIMARY KEY,
    user_id      TEXT NOT NULL,
    text_hash    TEXT NOT NULL,
    text         TEXT NOT NULL,
    important    INTEGER NOT NULL,
    created_at   TEXT NOT NULL,
    updated_at   TEXT NOT NULL,
    conversation TEXT,
    turn         TEXT,
    call         TEXT,
    UNIQUE (user_id, text_hash)
) STRICT;
