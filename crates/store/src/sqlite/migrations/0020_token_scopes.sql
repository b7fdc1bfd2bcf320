-- What a token may be used for: read, write and answer, separated by spaces. Tokens of before keep all of it.
ALTER TABLE adjutant_token ADD COLUMN scopes TEXT NOT NULL DEFAULT 'read write answer';
