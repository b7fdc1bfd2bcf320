-- Whether a person gave a conversation its title: then no model's takes its place.
ALTER TABLE adjutant_conversation ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
