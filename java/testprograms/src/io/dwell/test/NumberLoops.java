package io.dwell.test;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.Random;

/** Functions of mathematics, big numbers, and sorting. */
final class NumberLoops {
    static final int KINDS = 17;
    private static final int TIMES = 2_000;

    private final BigInteger big = new BigInteger(2048, new Random(1)).setBit(0);
    private final BigInteger other = new BigInteger(2000, new Random(2));
    private final BigInteger modulus = new BigInteger(1024, new Random(3)).setBit(0);
    private final int[] unsorted = new Random(4).ints(4096).toArray();
    private double sum = 0.5;
    private BigInteger last = BigInteger.ONE;
    private int sorted;

    void step(int kind) {
        switch (kind) {
            case 0:
                loopSin();
                break;
            case 1:
                loopCos();
                break;
            case 2:
                loopTan();
                break;
            case 3:
                loopExp();
                break;
            case 4:
                loopLog();
                break;
            case 5:
                loopLog10();
                break;
            case 6:
                loopPow();
                break;
            case 7:
                loopRemainder();
                break;
            case 8:
                loopTanh();
                break;
            case 9:
                loopCbrt();
                break;
            case 10:
                loopMultiply();
                break;
            case 11:
                loopSquare();
                break;
            case 12:
                loopModPow();
                break;
            case 13:
                loopShiftLeft();
                break;
            case 14:
                loopShiftRight();
                break;
            case 15:
                loopFloor();
                break;
            default:
                loopSort();
                break;
        }
    }

    private void loopSin() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.sin(i * 1.1);
        }
    }

    private void loopCos() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.cos(i * 1e5);
        }
    }

    private void loopTan() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.tan(i * 1.1);
        }
    }

    private void loopExp() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.exp(i * -0.01);
        }
    }

    private void loopLog() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.log(i + 1.5);
        }
    }

    private void loopLog10() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.log10(i + 1.5);
        }
    }

    private void loopPow() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.pow(i + 0.5, 1.7);
        }
    }

    private void loopRemainder() {
        for (int i = 0; i < TIMES; i++) {
            sum += i * 1e10 % 3.7 + (float) i % 1.3f;
        }
    }

    private void loopTanh() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.tanh(i * 0.001) + Math.sinh(i * 0.001);
        }
    }

    private void loopCbrt() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.cbrt(i + 0.3);
        }
    }

    private void loopFloor() {
        for (int i = 0; i < TIMES; i++) {
            sum += Math.floor(i * 0.3) + Math.rint(i * 0.7) + Math.round(i * 0.9);
        }
    }

    private void loopMultiply() {
        for (int i = 0; i < TIMES / 20; i++) {
            last = big.multiply(other);
        }
    }

    private void loopSquare() {
        for (int i = 0; i < TIMES / 20; i++) {
            last = big.multiply(big);
        }
    }

    private void loopModPow() {
        last = big.modPow(other, modulus);
    }

    private void loopShiftLeft() {
        for (int i = 0; i < TIMES / 4; i++) {
            last = big.shiftLeft(i & 31 | 1);
        }
    }

    private void loopShiftRight() {
        for (int i = 0; i < TIMES / 4; i++) {
            last = big.shiftRight(i & 31 | 1);
        }
    }

    private void loopSort() {
        int[] copy = Arrays.copyOf(unsorted, unsorted.length);
        Arrays.sort(copy);
        sorted += copy[0];
    }
}
