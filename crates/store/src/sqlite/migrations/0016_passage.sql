-- What was said in conversations, as it is searched for: filled behind the turns. The mark of a conversation: everything of its own up
-- to `indexed_to` is in the index, and was all there was when it had `indexed_turns` turns.
ALTER TABLE adjutant_conversation ADD COLUMN indexed_to INTEGER NOT NULL DEFAULT 0;
ALTER TABLE adjutant_conversation ADD COLUMN indexed_turns INTEGER NOT NULL DEFAULT 0;
-- Its passages, and the sum of their lengths.
ALTER TABLE adjutant_conversation ADD COLUMN indexed_passages INTEGER NOT NULL DEFAULT 0;
ALTER TABLE adjutant_conversation ADD COLUMN indexed_length INTEGER NOT NULL DEFAULT 0;
-- Conversations with something that is not in the index. Of version 8 are the ids of single requests, which are not searched.
CREATE INDEX adjutant_conversation_unindexed ON adjutant_conversation (agent, updated_at, key)
    WHERE indexed_turns <> turns AND substr(id, 15, 1) <> '8';

-- A piece of a turn that began at `seq`. `words`: an owner's mark and the words, separated by spaces.
CREATE TABLE adjutant_passage (
    key          INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    number       INTEGER NOT NULL,
    turn         TEXT NOT NULL,
    at           TEXT NOT NULL,
    length       INTEGER NOT NULL,
    words        TEXT NOT NULL,
    UNIQUE (conversation, seq, number)
) STRICT;

-- The passages by their words. Only spaces separate words: every other sign of ASCII is named here as a part of them, and the rest of
-- Unicode always is. It holds no text of its own, and changes with the passages, in their transaction.
CREATE VIRTUAL TABLE adjutant_passage_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);
CREATE TRIGGER adjutant_passage_added AFTER INSERT ON adjutant_passage BEGIN
    INSERT INTO adjutant_passage_words (rowid, words) VALUES (new.key, new.words);
END;
CREATE TRIGGER adjutant_passage_removed AFTER DELETE ON adjutant_passage BEGIN
    DELETE FROM adjutant_passage_words WHERE rowid = old.key;
END;
