package io.dwell.api;

/** The name of a label, declared once with {@link Dwell#label}; see {@link Dwell#setLabel}. */
public final class Label {
    private static final int UNKNOWN = -2;

    private final String name;
    private volatile Texts values;
    private volatile int number = UNKNOWN;

    Label(String name) {
        this.name = name;
    }

    /** The name. */
    public String name() {
        return name;
    }

    /** The label's number, or -1 if there are too many; only with an agent. */
    int number() {
        int known = number;
        return known != UNKNOWN ? known : resolve();
    }

    private synchronized int resolve() {
        if (number == UNKNOWN) {
            int found = Native.label(name);
            if (found < 0) {
                Trouble.TOO_MANY_LABELS.count();
            } else {
                values = new Texts(found + 1);
            }
            number = found;
        }
        return number;
    }

    /** Must be called after {@link #number} has returned a number. */
    int valueNumber(String value) {
        return values.number(value);
    }

    @Override
    public String toString() {
        return name;
    }
}
