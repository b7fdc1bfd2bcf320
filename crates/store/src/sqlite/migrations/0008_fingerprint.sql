-- A hash of the request an input was made from, where its client named it: the same name for another request is refused.
ALTER TABLE inbox ADD COLUMN fingerprint TEXT;
-- The place of the conversation's last event when the input was accepted: what its sender can have seen.
ALTER TABLE inbox ADD COLUMN after_seq INTEGER;
