package io.dwell.test;

import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.spec.AlgorithmParameterSpec;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** Digests, ciphers and keys; what a Java version does not have is left out. */
final class CryptoLoops {
    static final int KINDS = 22;
    private static final int LENGTH = 4096;
    private static final int TIMES = 20;

    private final byte[] data = new byte[LENGTH];
    private final byte[] out = new byte[LENGTH + 64];
    private final MessageDigest md5 = digest("MD5");
    private final MessageDigest sha1 = digest("SHA-1");
    private final MessageDigest sha224 = digest("SHA-224");
    private final MessageDigest sha256 = digest("SHA-256");
    private final MessageDigest sha384 = digest("SHA-384");
    private final MessageDigest sha512 = digest("SHA-512");
    private final MessageDigest sha3 = digest("SHA3-256");
    private final Cipher cbcEncrypt = cipher("AES/CBC/NoPadding", true);
    private final Cipher cbcDecrypt = cipher("AES/CBC/NoPadding", false);
    private final Cipher ctr = cipher("AES/CTR/NoPadding", true);
    private final Cipher ecb = cipher("AES/ECB/NoPadding", true);
    private final Cipher gcm = cipher("AES/GCM/NoPadding", true);
    private final Cipher chacha = cipher("ChaCha20-Poly1305", true);
    private final KeyPairGenerator ec = generator("EC");
    private final KeyPairGenerator x25519 = generator("X25519");
    private final KeyPairGenerator kem = generator("ML-KEM");
    private final KeyPairGenerator dsa = generator("ML-DSA");
    private int number;

    private static MessageDigest digest(String name) {
        try {
            return MessageDigest.getInstance(name);
        } catch (GeneralSecurityException e) {
            return null;
        }
    }

    private static KeyPairGenerator generator(String name) {
        try {
            return KeyPairGenerator.getInstance(name);
        } catch (GeneralSecurityException e) {
            return null;
        }
    }

    private static Cipher cipher(String name, boolean encrypt) {
        try {
            Cipher cipher = Cipher.getInstance(name);
            init(cipher, encrypt, 0);
            return cipher;
        } catch (GeneralSecurityException e) {
            return null;
        }
    }

    private static void init(Cipher cipher, boolean encrypt, int number)
            throws GeneralSecurityException {
        String name = cipher.getAlgorithm();
        boolean isChacha = name.startsWith("ChaCha");
        byte[] key = new byte[isChacha ? 32 : 16];
        byte[] iv = new byte[name.contains("GCM") || isChacha ? 12 : 16];
        ByteBuffer.wrap(iv).putInt(number);
        int mode = encrypt ? Cipher.ENCRYPT_MODE : Cipher.DECRYPT_MODE;
        SecretKeySpec secret = new SecretKeySpec(key, isChacha ? "ChaCha20" : "AES");
        AlgorithmParameterSpec spec =
                name.contains("GCM") ? new GCMParameterSpec(128, iv) : new IvParameterSpec(iv);
        if (name.contains("ECB")) {
            cipher.init(mode, secret);
        } else {
            cipher.init(mode, secret, spec);
        }
    }

    void step(int kind) throws GeneralSecurityException {
        switch (kind) {
            case 0:
                loopMd5();
                break;
            case 1:
                loopSha1();
                break;
            case 2:
                loopSha224();
                break;
            case 3:
                loopSha256();
                break;
            case 4:
            case 5:
                loopSha384();
                break;
            case 6:
            case 7:
                loopSha512();
                break;
            case 8:
                loopSha3();
                break;
            case 9:
                loopCbcEncrypt();
                break;
            case 10:
                loopCbcDecrypt();
                break;
            case 11:
                loopCtr();
                break;
            case 12:
                loopEcb();
                break;
            case 13:
            case 14:
                loopGcm();
                break;
            case 15:
            case 16:
                loopChaCha();
                break;
            case 17:
                loopEc();
                break;
            case 18:
                loopX25519();
                break;
            case 19:
                loopKem();
                break;
            case 20:
                loopDsa();
                break;
            default:
                loopSmallSha512();
                break;
        }
    }

    private void loopMd5() {
        work(md5, LENGTH);
    }

    private void loopSha1() {
        work(sha1, LENGTH);
    }

    private void loopSha224() {
        work(sha224, LENGTH);
    }

    private void loopSha256() {
        work(sha256, LENGTH);
    }

    private void loopSha384() {
        work(sha384, LENGTH);
    }

    private void loopSha512() {
        work(sha512, LENGTH);
    }

    /** One block each, by way of another intrinsic. */
    private void loopSmallSha512() {
        work(sha512, 64);
        work(sha256, 20);
    }

    private void loopSha3() {
        work(sha3, LENGTH);
    }

    private void work(MessageDigest digest, int length) {
        for (int i = 0; i < TIMES && digest != null; i++) {
            digest.update(data, 0, length);
            number += digest.digest()[0];
        }
    }

    private void loopCbcEncrypt() throws GeneralSecurityException {
        work(cbcEncrypt);
    }

    private void loopCbcDecrypt() throws GeneralSecurityException {
        work(cbcDecrypt);
    }

    private void loopCtr() throws GeneralSecurityException {
        work(ctr);
    }

    private void loopEcb() throws GeneralSecurityException {
        work(ecb);
    }

    private void work(Cipher cipher) throws GeneralSecurityException {
        for (int i = 0; i < TIMES; i++) {
            number += cipher.update(data, 0, LENGTH, out, 0);
        }
    }

    /** Their initial vectors must not come again. */
    private void loopGcm() throws GeneralSecurityException {
        workAnew(gcm);
    }

    private void loopChaCha() throws GeneralSecurityException {
        if (chacha != null) {
            workAnew(chacha);
        }
    }

    private void workAnew(Cipher cipher) throws GeneralSecurityException {
        for (int i = 0; i < TIMES / 4; i++) {
            number++;
            init(cipher, true, number);
            number += cipher.doFinal(data, 0, LENGTH, out, 0) & 1;
        }
    }

    private void loopEc() {
        generate(ec);
    }

    private void loopX25519() {
        generate(x25519);
    }

    private void loopKem() {
        generate(kem);
    }

    private void loopDsa() {
        generate(dsa);
    }

    private void generate(KeyPairGenerator generator) {
        if (generator != null) {
            number += generator.generateKeyPair().hashCode();
        }
    }
}
