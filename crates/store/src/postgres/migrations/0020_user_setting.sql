-- What a user has set, whatever program they use. A user who never set anything has no row.
CREATE TABLE adjutant_user_setting (
    user_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    time_zone TEXT
);
