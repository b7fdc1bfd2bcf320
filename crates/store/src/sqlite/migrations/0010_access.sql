-- What a token opens, for how long, and when it was used last; and beside the tokens of programs the sessions of browsers.

-- operator, user or metrics.
ALTER TABLE adjutant_token ADD COLUMN role TEXT NOT NULL DEFAULT 'user';
-- token or session.
ALTER TABLE adjutant_token ADD COLUMN kind TEXT NOT NULL DEFAULT 'token';
-- From when on it is refused, and the last moment that this may be moved to. NULL: never; it is not moved.
ALTER TABLE adjutant_token ADD COLUMN expires_at TEXT;
ALTER TABLE adjutant_token ADD COLUMN ends_at TEXT;
-- A minute more or less.
ALTER TABLE adjutant_token ADD COLUMN used_at TEXT;
-- The token it was made with, and is revoked with.
ALTER TABLE adjutant_token ADD COLUMN parent TEXT;
CREATE INDEX adjutant_token_user ON adjutant_token (user_id);
