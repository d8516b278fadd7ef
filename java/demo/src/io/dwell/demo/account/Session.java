package io.dwell.demo.account;

/** The service's data about a user who has logged in. */
final class Session {
    private static final int PAGE_BYTES = 64 << 10;

    final long number;
    /** The page that was shown last, in case it is requested again. */
    private final byte[] page;

    Session(long number) {
        this.number = number;
        this.page = render(number);
    }

    private static byte[] render(long number) {
        byte[] page = new byte[PAGE_BYTES];
        for (int i = 0; i < page.length; i += 64) {
            page[i] = (byte) (number + i);
        }
        return page;
    }
}
