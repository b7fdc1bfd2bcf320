-- 1 if a program wrote the description that may not answer in the person's place.
ALTER TABLE adjutant_task ADD COLUMN from_others BIGINT NOT NULL DEFAULT 0;
ALTER TABLE adjutant_deleted_task ADD COLUMN from_others BIGINT NOT NULL DEFAULT 0;
