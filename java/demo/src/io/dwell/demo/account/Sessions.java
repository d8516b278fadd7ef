package io.dwell.demo.account;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * All users who have logged in. Users never log out, and a session does not expire: a leak, on
 * purpose.
 */
public final class Sessions {
    /**
     * 96 MB: the demo must be able to run for a day, so the oldest sessions are removed in the end.
     */
    private static final int KEPT_MAX = 1500;

    private final Deque<Session> open = new ArrayDeque<>();
    private long count;

    /** Opens a session; returns its number. */
    public long open() {
        Session session = new Session(next());
        keep(session);
        return session.number;
    }

    private synchronized long next() {
        return ++count;
    }

    private synchronized void keep(Session session) {
        open.addLast(session);
        if (open.size() > KEPT_MAX) {
            open.removeFirst();
        }
    }
}
