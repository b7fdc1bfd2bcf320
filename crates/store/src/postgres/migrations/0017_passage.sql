-- What was said in conversations, as it is searched for: filled behind the turns. The mark of a conversation: everything of its own up
-- to `indexed_to` is in the index, and was all there was when it had `indexed_turns` turns.
ALTER TABLE adjutant_conversation ADD COLUMN indexed_to BIGINT NOT NULL DEFAULT 0;
ALTER TABLE adjutant_conversation ADD COLUMN indexed_turns BIGINT NOT NULL DEFAULT 0;
-- Its passages, and the sum of their lengths.
ALTER TABLE adjutant_conversation ADD COLUMN indexed_passages BIGINT NOT NULL DEFAULT 0;
ALTER TABLE adjutant_conversation ADD COLUMN indexed_length BIGINT NOT NULL DEFAULT 0;
-- Conversations with something that is not in the index. Of version 8 are the ids of single requests, which are not searched.
CREATE INDEX adjutant_conversation_unindexed ON adjutant_conversation (agent, updated_at, key)
    WHERE indexed_turns <> turns AND substr(id, 15, 1) <> '8';

-- A piece of a turn that began at `seq`. `words`: an owner's mark and the words, separated by spaces.
CREATE TABLE adjutant_passage (
    key          BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    conversation BIGINT NOT NULL REFERENCES adjutant_conversation (key) ON DELETE CASCADE,
    seq          BIGINT NOT NULL,
    number       BIGINT NOT NULL,
    turn         TEXT COLLATE "C" NOT NULL,
    at           TEXT COLLATE "C" NOT NULL,
    length       BIGINT NOT NULL,
    words        TEXT COLLATE "C" NOT NULL,
    UNIQUE (conversation, seq, number)
);
-- The passages by their words, which are taken as they are.
CREATE INDEX adjutant_passage_words ON adjutant_passage USING gin (array_to_tsvector(string_to_array(words, ' ')));
