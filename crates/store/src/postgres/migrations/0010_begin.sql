-- Claiming a conversation gives what is newer in it in the same answer, and an input that is accepted for whoever claims it next can
-- start its turn.

-- Returns what a worker does not know of a conversation, as JSON: the snapshot (seq, messages_from, v, digest, body; null: it needs
-- none, or there is none), the events that have the snapshot's messages, the place behind which the events begin, those events, and the
-- inputs that nobody has taken. p_waits: there may be such inputs. NULL: nothing is newer, or it is a branch, whose events are elsewhere too.
CREATE FUNCTION adjutant_newer_1(c adjutant_conversation, p_waits BOOLEAN, p_known_created TEXT, p_known_seq BIGINT)
RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    v_after BIGINT;
    v_from BIGINT;
    v_snapshot JSON;
    v_said JSON;
BEGIN
    IF c.branched_from_key IS NOT NULL OR c.branched_from_seq IS NOT NULL THEN
        RETURN NULL;
    END IF;
    v_after := CASE WHEN p_known_created = c.created_at AND p_known_seq < c.next_seq THEN p_known_seq END;
    IF coalesce(v_after, 0) = c.next_seq - 1 AND NOT p_waits THEN
        RETURN NULL;
    END IF;
    IF v_after IS NULL AND c.turns > 1 THEN
        SELECT s.seq, s.messages_from, json_build_array(s.seq, s.messages_from, s.v, s.digest, s.body) INTO v_after, v_from, v_snapshot
        FROM adjutant_snapshot AS s WHERE s.conversation = c.key;
        SELECT json_agg(json_build_array(e.seq, e.v, e.kind, e.turn, e.step, coalesce(b.body, e.body), e.at) ORDER BY e.seq) INTO v_said
        FROM adjutant_event AS e LEFT JOIN adjutant_blob AS b ON b.conversation = e.conversation AND b.hash = e.blob
        WHERE e.conversation = c.key AND e.seq >= v_from AND e.seq <= v_after AND e.kind IN ('history_set', 'turn_finished');
    END IF;
    v_after := coalesce(v_after, 0);
    RETURN json_build_object('snapshot', v_snapshot, 'said', coalesce(v_said, '[]'), 'after', v_after,
        'events', coalesce((
            SELECT json_agg(json_build_array(e.seq, e.v, e.kind, e.turn, e.step, coalesce(b.body, e.body), e.at) ORDER BY e.seq)
            FROM adjutant_event AS e LEFT JOIN adjutant_blob AS b ON b.conversation = e.conversation AND b.hash = e.blob
            WHERE e.conversation = c.key AND e.seq > v_after), '[]'),
        'inbox', coalesce((
            SELECT json_agg(json_build_array(i.id, i.v, i.body, i.at, i.request_id, i.fingerprint, i.after_seq) ORDER BY i.accepted)
            FROM adjutant_inbox AS i WHERE p_waits AND i.conversation = c.key AND i.taken_seq IS NULL), '[]'));
END
$$;

-- Accepts an input, claims the conversation for p_worker in its p_epoch (NULL: nobody does), and starts the turn if nobody else has
-- the conversation and nothing else is to do.
--
-- p_input: id, body, time, request, fingerprint, title. NULL: none. p_room: how many inputs that start a turn may wait with it.
-- NULL: it starts none, and is always accepted. p_first: an event in front of the others, if the
-- conversation has none. The rest is as above; p_parked is counted from the first of p_events.
-- o_outcome: 0 no such conversation, 1 another worker has it, 2 claimed, 3 claimed instead of another worker, 4 started,
-- 5 the id was used for another request, 6 deleted meanwhile, 7 somebody has it locked, and p_wait is FALSE, 8 no worker has it
-- and none was named, 9 as many inputs wait as may. o_next_seq: as it was before the turn. p_known_created, p_known_seq: the
-- conversation that the worker knows, and the last event it knows of it; NULL: none. o_newer: if it has claimed the conversation,
-- what adjutant_newer_1 gives.
CREATE FUNCTION adjutant_begin_2(
    p_agent TEXT, p_user TEXT, p_id TEXT, p_input TEXT[], p_room BIGINT, p_worker TEXT, p_epoch BIGINT, p_lease_us BIGINT,
    p_first TEXT[], p_v BIGINT, p_blobs TEXT[], p_events TEXT[], p_counts BIGINT[], p_status TEXT[], p_parked BIGINT, p_decisions TEXT[],
    p_invocations TEXT[], p_known_created TEXT, p_known_seq BIGINT, p_wait BOOLEAN, OUT o_outcome BIGINT, OUT o_conversation BIGINT,
    OUT o_created_at TEXT, OUT o_next_seq BIGINT, OUT o_waits BIGINT, OUT o_newer TEXT
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
    v_starts := o_outcome > 1 AND c.untaken = 0 AND c.turn IS NULL AND p_events IS NOT NULL;
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
        IF p_worker IS NOT NULL THEN
            o_outcome := 4;
        END IF;
        PERFORM adjutant_write_1(c, p_v, p_events, p_counts, p_status, v_start + p_parked, p_decisions, p_invocations, FALSE);
    ELSE
        PERFORM adjutant_write_1(c, p_v, NULL, NULL, NULL, NULL, NULL, NULL, FALSE);
    END IF;
    IF p_worker IS NOT NULL AND o_outcome > 1 THEN
        c.turns := c.turns + CASE WHEN v_starts THEN p_counts[1] ELSE 0 END;
        o_newer := adjutant_newer_1(c, o_waits = 1, p_known_created, p_known_seq);
    END IF;
END
$$;
