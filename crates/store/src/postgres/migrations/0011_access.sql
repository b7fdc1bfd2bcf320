-- What a token opens, for how long, and when it was used last; and beside the tokens of programs the sessions of browsers.

-- operator, user or metrics.
ALTER TABLE adjutant_token ADD COLUMN role TEXT COLLATE "C" NOT NULL DEFAULT 'user';
-- token or session.
ALTER TABLE adjutant_token ADD COLUMN kind TEXT COLLATE "C" NOT NULL DEFAULT 'token';
-- From when on it is refused, and the last moment that this may be moved to. NULL: never; it is not moved.
ALTER TABLE adjutant_token ADD COLUMN expires_at TEXT COLLATE "C";
ALTER TABLE adjutant_token ADD COLUMN ends_at TEXT COLLATE "C";
-- A minute more or less.
ALTER TABLE adjutant_token ADD COLUMN used_at TEXT COLLATE "C";
-- The token it was made with, and is revoked with.
ALTER TABLE adjutant_token ADD COLUMN parent TEXT COLLATE "C";
CREATE INDEX adjutant_token_user ON adjutant_token (user_id);
