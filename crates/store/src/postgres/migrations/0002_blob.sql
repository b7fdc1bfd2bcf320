-- Bodies that are too large for a row of `event`, by the SHA-256 of their text. They belong to one conversation, so that
-- they go with it, and nothing of one user's is shared with another's.
CREATE TABLE blob (
    conversation BIGINT NOT NULL REFERENCES conversation (key) ON DELETE CASCADE,
    hash         TEXT COLLATE "C" NOT NULL,
    body         TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (conversation, hash)
);
-- The hash, where `body` is empty because it is there.
ALTER TABLE event ADD COLUMN blob TEXT COLLATE "C";
-- When the first of the calls that wait for a human expires.
ALTER TABLE conversation ADD COLUMN wake_at TEXT COLLATE "C";
CREATE INDEX conversation_wake ON conversation (wake_at) WHERE wake_at IS NOT NULL;
