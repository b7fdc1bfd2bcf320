-- What a turn writes is one call of one function, so that it is one message to the server and one answer. The last number of
-- a name is the version of what a function takes and gives: a newer one gets the next number and stands beside it, so that an
-- older program that runs goes on.

-- A database that is new has no statistics, and then the planner takes an index that only begins with the same columns to be as
-- good as the one that has all of them: of those that cost the same it takes the newest. The plans of functions are kept.
ALTER TABLE adjutant_conversation DROP CONSTRAINT adjutant_conversation_agent_user_id_id_key, ADD UNIQUE (agent, user_id, id);
ALTER TABLE adjutant_decision DROP CONSTRAINT adjutant_decision_user_id_id_key, ADD UNIQUE (user_id, id);

-- Writes events behind those there are, takes their inputs, fills both logs and saves the conversation; returns how many
-- inputs nobody has taken then. What it is given was computed from the events by the program.
--
-- p_events: kind, turn, step, body, time, input that is taken. NULL: none.
-- p_counts: turns that begin; inputs that wait for the end of a turn; whether those not taken are counted again (1).
-- p_status: the open turn, what waits for a human, when the first of it expires. p_parked: where the turn was parked.
-- p_decisions, p_invocations: the rows of both logs. p_release: the claim is given back if no input waits.
CREATE FUNCTION adjutant_write_1(
    c adjutant_conversation, p_v BIGINT, p_events TEXT[], p_counts BIGINT[], p_status TEXT[], p_parked BIGINT,
    p_decisions TEXT[], p_invocations TEXT[], p_release BOOLEAN
) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    r TEXT[];
BEGIN
    IF p_events IS NOT NULL THEN
        FOREACH r SLICE 1 IN ARRAY p_events LOOP
            INSERT INTO adjutant_event (conversation, seq, v, kind, turn, step, body, at)
            VALUES (c.key, c.next_seq, p_v, r[1], r[2], r[3], r[4], r[5]);
            IF r[6] IS NOT NULL THEN
                UPDATE adjutant_inbox SET taken_seq = c.next_seq
                WHERE conversation = c.key AND id = r[6] AND taken_seq IS NULL;
                IF FOUND THEN
                    c.untaken := c.untaken - 1;
                END IF;
            END IF;
            c.next_seq := c.next_seq + 1;
        END LOOP;
        IF p_counts[3] = 1 THEN
            SELECT count(*) INTO c.untaken FROM adjutant_inbox WHERE conversation = c.key AND taken_seq IS NULL;
        END IF;
        c.untaken := c.untaken - p_counts[2];
        c.turns := c.turns + p_counts[1];
        c.turn := p_status[1];
        c.waiting := p_status[2];
        c.wake_at := p_status[3];
        c.parked_seq := p_parked;
    END IF;
    IF p_decisions IS NOT NULL THEN
        FOREACH r SLICE 1 IN ARRAY p_decisions LOOP
            IF r[1] = 'new' THEN
                INSERT INTO adjutant_decision (conversation, conversation_id, user_id, id, agent, version, request_id,
                    started_at, ended_at, message, message_chars, intent, kind, outcome, content, model_provider, model_name,
                    model_calls, iterations, input_tokens, output_tokens, cached_tokens, cache_written_tokens,
                    thinking_tokens, cost_usd, notices, model_ms, tool_ms, total_ms, error_code, raw_response)
                VALUES (c.key, c.id, c.user_id, r[2], r[22], r[23], r[24],
                    r[25], r[3], r[26], r[27]::BIGINT, r[4], r[5], r[6], r[7], r[28], r[29],
                    r[8]::BIGINT, r[9]::BIGINT, r[10]::BIGINT, r[11]::BIGINT, r[12]::BIGINT, r[13]::BIGINT,
                    r[14]::BIGINT, r[15]::DOUBLE PRECISION, r[16], r[17]::BIGINT, r[18]::BIGINT, r[19]::BIGINT, r[20], r[21]);
            ELSE
                UPDATE adjutant_decision SET ended_at = r[3], intent = r[4], kind = r[5], outcome = r[6], content = r[7],
                    model_calls = r[8]::BIGINT, iterations = r[9]::BIGINT, input_tokens = r[10]::BIGINT,
                    output_tokens = r[11]::BIGINT, cached_tokens = r[12]::BIGINT, cache_written_tokens = r[13]::BIGINT,
                    thinking_tokens = r[14]::BIGINT, cost_usd = r[15]::DOUBLE PRECISION, notices = r[16],
                    model_ms = r[17]::BIGINT, tool_ms = r[18]::BIGINT, total_ms = r[19]::BIGINT, error_code = r[20],
                    raw_response = r[21]
                WHERE user_id = c.user_id AND id = r[2];
            END IF;
        END LOOP;
    END IF;
    IF p_invocations IS NOT NULL THEN
        FOREACH r SLICE 1 IN ARRAY p_invocations LOOP
            INSERT INTO adjutant_tool_invocation (conversation, user_id, decision, id, tool, arguments, success, data, error,
                ms, attempt, at)
            VALUES (c.key, c.user_id, r[1], r[2], r[3], r[4], r[5]::BIGINT, r[6], r[7], r[8]::BIGINT, r[9]::BIGINT, r[10])
            ON CONFLICT (user_id, decision, id) DO NOTHING;
        END LOOP;
    END IF;
    IF p_release AND c.untaken <= 0 THEN
        c.lease_by := NULL;
        c.lease_until := NULL;
    END IF;
    UPDATE adjutant_conversation SET title = c.title, updated_at = c.updated_at, next_seq = c.next_seq, untaken = c.untaken,
        turn = c.turn, parked_seq = c.parked_seq, waiting = c.waiting, wake_at = c.wake_at, lease_by = c.lease_by,
        lease_until = c.lease_until, epoch = c.epoch, turns = c.turns
    WHERE key = c.key;
    RETURN c.untaken;
END
$$;

-- Writes long values that rows refer to, unless the conversation has them: hash, value. NULL: none.
CREATE FUNCTION adjutant_blobs_1(p_key BIGINT, p_blobs TEXT[]) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    r TEXT[];
BEGIN
    IF p_blobs IS NOT NULL THEN
        FOREACH r SLICE 1 IN ARRAY p_blobs LOOP
            INSERT INTO adjutant_blob (conversation, hash, body) VALUES (p_key, r[1], r[2])
            ON CONFLICT (conversation, hash) DO NOTHING;
        END LOOP;
    END IF;
END
$$;

-- Locks a conversation and returns it; nothing if there is none. With p_wait of FALSE a lock of somebody else is not waited for:
-- then the key is -1.
CREATE FUNCTION adjutant_lock_1(p_key BIGINT, p_wait BOOLEAN) RETURNS adjutant_conversation LANGUAGE plpgsql AS $$
DECLARE
    c adjutant_conversation;
BEGIN
    IF p_wait THEN
        SELECT * INTO c FROM adjutant_conversation WHERE key = p_key FOR UPDATE;
    ELSE
        SELECT * INTO c FROM adjutant_conversation WHERE key = p_key FOR UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM adjutant_conversation WHERE key = p_key) THEN
            c.key := -1;
        END IF;
    END IF;
    RETURN c;
END
$$;

-- Adds events at the places from p_seq on, if p_worker has the conversation since its p_epoch (NULL: whoever has it), and gives
-- the claim back unless inputs wait, if p_release is 1. p_key: the conversation that the change was computed for; NULL, as p_seq,
-- if there are no events. p_snapshot: seq, messages_from, v, digest and body of the conversation's snapshot with these events.
-- NULL: the last one stays. p_spent: what is booked with them: id, day, user, the blocks of everybody's and of the user's, whether
-- each is closed, then tokens, model_calls, tool_calls, ms and cost. NULL: nothing.
-- o_outcome: 0 it is another conversation, the place is taken, or the claim is not this worker's any more; 1 done; 7 somebody
-- has it locked, and p_wait is FALSE.
CREATE FUNCTION adjutant_append_1(
    p_agent TEXT, p_user TEXT, p_id TEXT, p_key BIGINT, p_seq BIGINT, p_worker TEXT, p_epoch BIGINT, p_release BIGINT,
    p_v BIGINT, p_blobs TEXT[], p_events TEXT[], p_counts BIGINT[], p_status TEXT[], p_parked BIGINT, p_decisions TEXT[],
    p_invocations TEXT[], p_snapshot TEXT[], p_spent TEXT[], p_wait BOOLEAN, OUT o_outcome BIGINT, OUT o_conversation BIGINT,
    OUT o_untaken BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    c adjutant_conversation;
    r TEXT[];
BEGIN
    IF p_key IS NULL THEN
        SELECT key INTO p_key FROM adjutant_conversation WHERE agent = p_agent AND user_id = p_user AND id = p_id;
    END IF;
    c := adjutant_lock_1(p_key, p_wait);
    IF c.key = -1 THEN
        o_outcome := 7;
        RETURN;
    ELSIF c.key IS NULL OR c.agent <> p_agent OR c.user_id <> p_user OR c.id <> p_id OR c.next_seq <> p_seq
            OR (p_worker IS NOT NULL AND (c.lease_by IS DISTINCT FROM p_worker OR c.epoch <> p_epoch)) THEN
        o_outcome := 0;
        RETURN;
    END IF;
    o_outcome := 1;
    o_conversation := c.key;
    PERFORM adjutant_blobs_1(c.key, p_blobs);
    o_untaken := adjutant_write_1(c, p_v, p_events, p_counts, p_status, p_parked, p_decisions, p_invocations,
        p_release = 1);
    IF p_snapshot IS NOT NULL THEN
        INSERT INTO adjutant_snapshot (conversation, seq, messages_from, v, digest, body)
        VALUES (c.key, p_snapshot[1][1]::BIGINT, p_snapshot[1][2]::BIGINT, p_snapshot[1][3]::BIGINT, p_snapshot[1][4],
            p_snapshot[1][5])
        ON CONFLICT (conversation) DO UPDATE SET seq = excluded.seq, messages_from = excluded.messages_from,
            v = excluded.v, digest = excluded.digest, body = excluded.body;
    END IF;
    IF p_spent IS NOT NULL THEN
        FOREACH r SLICE 1 IN ARRAY p_spent LOOP
            INSERT INTO adjutant_budget_booking (id, day, user_id, everyone_block, own_block, closes_everyone, closes_own,
                tokens, model_calls, tool_calls, ms, cost)
            VALUES (r[1], r[2], r[3], r[4], r[5], r[6]::BIGINT, r[7]::BIGINT, r[8]::BIGINT, r[9]::BIGINT, r[10]::BIGINT,
                r[11]::BIGINT, r[12]::BIGINT)
            ON CONFLICT (id) DO NOTHING;
        END LOOP;
    END IF;
END
$$;

-- Returns a moment by the server's clock as it is stored: so many microseconds from now.
CREATE FUNCTION adjutant_moment_1(p_us BIGINT) RETURNS TEXT LANGUAGE sql VOLATILE AS $$
    SELECT to_char((clock_timestamp() + p_us * INTERVAL '1 microsecond') AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.US"000Z"')
$$;

-- Accepts an input, claims the conversation for p_worker in its p_epoch (NULL: nobody does), and starts the turn if nothing else is to do.
--
-- p_input: id, body, time, request, fingerprint, title. NULL: none. p_room: how many inputs that start a turn may wait with it.
-- NULL: it starts none, and is always accepted. p_first: an event in front of the others, if the
-- conversation has none. The rest is as above; p_parked is counted from the first of p_events.
-- o_outcome: 0 no such conversation, 1 another worker has it, 2 claimed, 3 claimed instead of another worker, 4 started,
-- 5 the id was used for another request, 6 deleted meanwhile, 7 somebody has it locked, and p_wait is FALSE, 8 no worker has it
-- and none was named, 9 as many inputs wait as may. o_next_seq: as it was before the turn.
CREATE FUNCTION adjutant_begin_1(
    p_agent TEXT, p_user TEXT, p_id TEXT, p_input TEXT[], p_room BIGINT, p_worker TEXT, p_epoch BIGINT, p_lease_us BIGINT,
    p_first TEXT[], p_v BIGINT, p_blobs TEXT[], p_events TEXT[], p_counts BIGINT[], p_status TEXT[], p_parked BIGINT, p_decisions TEXT[],
    p_invocations TEXT[], p_wait BOOLEAN, OUT o_outcome BIGINT, OUT o_conversation BIGINT, OUT o_created_at TEXT, OUT o_next_seq BIGINT,
    OUT o_waits BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    c adjutant_conversation;
    v_key BIGINT;
    v_starts BOOLEAN;
    v_start BIGINT;
BEGIN
    SELECT a.key INTO v_key FROM adjutant_conversation AS a
    WHERE a.agent = p_agent AND a.user_id = p_user AND a.id = p_id;
    IF FOUND THEN
        c := adjutant_lock_1(v_key, p_wait);
    END IF;
    IF c.key IS NULL THEN
        IF p_input IS NULL THEN
            o_outcome := 0;
            RETURN;
        END IF;
        INSERT INTO adjutant_conversation (agent, user_id, id, title, created_at, updated_at)
        VALUES (p_agent, p_user, p_id, '', p_input[3], p_input[3])
        ON CONFLICT (agent, user_id, id) DO NOTHING RETURNING * INTO c;
        IF NOT FOUND THEN
            -- Somebody else was quicker. It can only be gone if it was deleted in this very moment.
            SELECT a.key INTO v_key FROM adjutant_conversation AS a
            WHERE a.agent = p_agent AND a.user_id = p_user AND a.id = p_id;
            c := adjutant_lock_1(v_key, p_wait);
        END IF;
    END IF;
    IF c.key IS NULL OR c.key = -1 THEN
        o_outcome := CASE WHEN c.key IS NULL THEN 6 ELSE 7 END;
        RETURN;
    END IF;
    o_outcome := 1;
    IF p_worker IS NOT NULL THEN
        IF c.lease_by IS NULL OR c.lease_by = p_worker THEN
            o_outcome := 2;
        ELSIF c.lease_until IS NULL OR (c.lease_until <= adjutant_moment_1(0) COLLATE "C" AND NOT EXISTS (
                SELECT FROM adjutant_worker AS w
                WHERE w.id = c.lease_by AND w.epoch = c.epoch AND w.seen_until > adjutant_moment_1(0) COLLATE "C")) THEN
            o_outcome := 3;
        END IF;
    ELSIF c.lease_by IS NULL THEN
        o_outcome := 8;
    END IF;
    v_starts := p_worker IS NOT NULL AND o_outcome > 1 AND c.untaken = 0 AND c.turn IS NULL AND p_events IS NOT NULL;
    v_start := c.next_seq;
    IF p_first IS NOT NULL AND c.next_seq = 1 THEN
        v_start := 2;
        p_events := p_first || p_events;
    END IF;
    o_next_seq := c.next_seq;
    -- Those that wait for the end of an open turn are not counted in the row.
    IF p_room IS NOT NULL AND NOT v_starts AND (c.turn IS NOT NULL OR c.untaken >= p_room)
            AND p_room <= (SELECT count(*) FROM adjutant_inbox AS i WHERE i.conversation = c.key AND i.taken_seq IS NULL
                AND (i.body LIKE '{"kind":"message"%' OR i.body LIKE '{"kind":"call"%'))
            AND NOT EXISTS (SELECT FROM adjutant_inbox AS i WHERE i.conversation = c.key AND i.id = p_input[1]) THEN
        o_outcome := 9;
        RETURN;
    END IF;
    IF p_input IS NOT NULL THEN
        INSERT INTO adjutant_inbox (conversation, id, v, body, at, request_id, fingerprint, after_seq, taken_seq)
        VALUES (c.key, p_input[1], p_v, p_input[2], p_input[3], p_input[4], p_input[5], c.next_seq - 1,
            CASE WHEN v_starts THEN v_start END)
        ON CONFLICT (conversation, id) DO NOTHING;
        IF FOUND THEN
            c.updated_at := greatest(c.updated_at, p_input[3] COLLATE "C");
            IF c.title = '' THEN
                c.title := coalesce(p_input[6], '');
            END IF;
            IF NOT v_starts THEN
                c.untaken := c.untaken + 1;
            END IF;
        ELSIF EXISTS (SELECT FROM adjutant_inbox AS i WHERE i.conversation = c.key AND i.id = p_input[1]
                AND i.fingerprint <> p_input[5]) THEN
            o_outcome := 5;
            RETURN;
        ELSE
            -- What it led to before is what it leads to.
            v_starts := FALSE;
        END IF;
    END IF;
    IF p_worker IS NOT NULL AND o_outcome > 1 THEN
        -- Without an epoch, the worker's own claim stays in the one it is of.
        c.epoch := coalesce(p_epoch, CASE WHEN c.lease_by = p_worker THEN c.epoch END, 0);
        c.lease_by := p_worker;
        c.lease_until := adjutant_moment_1(p_lease_us);
    END IF;
    o_conversation := c.key;
    o_created_at := c.created_at;
    -- Those that wait for the end of an open turn are not counted.
    o_waits := CASE WHEN c.untaken > 0 OR c.turn IS NOT NULL THEN 1 ELSE 0 END;
    PERFORM adjutant_blobs_1(c.key, p_blobs);
    IF v_starts THEN
        o_outcome := 4;
        PERFORM adjutant_write_1(c, p_v, p_events, p_counts, p_status, v_start + p_parked, p_decisions, p_invocations, FALSE);
    ELSE
        PERFORM adjutant_write_1(c, p_v, NULL, NULL, NULL, NULL, NULL, NULL, FALSE);
    END IF;
END
$$;
