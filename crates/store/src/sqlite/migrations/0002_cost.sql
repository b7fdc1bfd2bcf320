-- What a turn cost depends on what was written to a provider's cache; `cost_usd` is empty where it is not known.
ALTER TABLE decision ADD COLUMN cache_written_tokens INTEGER;
-- What the person was told beside the answer, as JSON: settings left out, allowances, cuts.
ALTER TABLE decision ADD COLUMN notices TEXT NOT NULL DEFAULT '[]';
