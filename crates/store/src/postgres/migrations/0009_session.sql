-- The session of the server by which each worker hears the others. It ends with the process, also where the process ends suddenly,
-- so that nobody has to wait for the end of what it claimed. One that has none, as behind a pooler, is given up as late as before.
CREATE TABLE adjutant_worker_session (
    worker  TEXT COLLATE "C" PRIMARY KEY,
    pid     INTEGER NOT NULL,
    started TIMESTAMPTZ NOT NULL
);
