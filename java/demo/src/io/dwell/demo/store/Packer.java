package io.dwell.demo.store;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Packs parcels in sequence on a thread of its own, with {@code wait} and {@code notify}. */
public final class Packer implements Runnable {
    private static final long PARCEL_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    private long ordered;
    private long packed;

    /** Starts its thread, which ends with the process. */
    public static Packer start() {
        Packer packer = new Packer();
        Thread thread = new Thread(packer, "packer");
        thread.setDaemon(true);
        thread.start();
        return packer;
    }

    /** Orders a parcel; returns its number when it is packed. */
    public synchronized long pack() throws InterruptedException {
        long number = ++ordered;
        notifyAll();
        while (packed < number) {
            wait();
        }
        return number;
    }

    @Override
    public void run() {
        while (awaitOrder()) {
            LockSupport.parkNanos(PARCEL_NANOS);
            tellPacked();
        }
    }

    private synchronized boolean awaitOrder() {
        try {
            while (packed == ordered) {
                wait();
            }
            return true;
        } catch (InterruptedException e) {
            return false;
        }
    }

    private synchronized void tellPacked() {
        packed++;
        notifyAll();
    }
}
