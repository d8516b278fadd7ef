package io.dwell.demo.server;

import io.dwell.demo.bank.Ledger;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;

/** {@code POST /lock}: books transfers in a ledger that only one thread can enter at a time. */
final class LockEndpoint implements Endpoint {
    private static final int TRANSFERS = 4;

    private final Ledger ledger = new Ledger();

    @Override
    public String path() {
        return "/lock";
    }

    @Override
    public byte[] respond(byte[] body) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long seal = 0;
        for (int i = 0; i < TRANSFERS; i++) {
            int from = random.nextInt(Ledger.ACCOUNTS);
            int to = random.nextInt(Ledger.ACCOUNTS);
            seal = ledger.transfer(from, to, 1 + random.nextInt(99));
        }
        return Long.toHexString(seal).getBytes(StandardCharsets.ISO_8859_1);
    }
}
