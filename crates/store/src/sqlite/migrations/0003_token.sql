-- Who may ask over a network. A secret is kept as its SHA-256 only.
CREATE TABLE token (
    id         TEXT NOT NULL PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    user_id    TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;
