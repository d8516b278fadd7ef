package io.dwell.demo.bank;

import java.util.Arrays;

/** Accounts behind one lock that is held far too long: the audit runs inside it. */
public final class Ledger {
    public static final int ACCOUNTS = 512;

    private static final long OPENING_BALANCE_CENTS = 1_000_000;
    private static final int AUDIT_ROUNDS = 220;
    private static final long SEAL_MULTIPLIER = 0x9E3779B97F4A7C15L;

    private final long[] balancesCents = new long[ACCOUNTS];

    public Ledger() {
        Arrays.fill(balancesCents, OPENING_BALANCE_CENTS);
    }

    /** Books the transfer and returns the seal over all balances. */
    public synchronized long transfer(int from, int to, long amountCents) {
        balancesCents[from] -= amountCents;
        balancesCents[to] += amountCents;
        return auditWhileLocked();
    }

    private long auditWhileLocked() {
        long seal = 1;
        for (int round = 0; round < AUDIT_ROUNDS; round++) {
            for (long balance : balancesCents) {
                seal = (seal ^ balance) * SEAL_MULTIPLIER;
            }
        }
        return seal;
    }
}
